/*
 * The helper keeps CAP_AUDIT_WRITE for its records and CAP_CHOWN for the tool, which writes the new gshadow as
 * root:shadow and stops half-way without it. All else the tool may do as the owner of /etc. The bounding set and
 * no_new_privs see to it that the tool gets CAP_CHOWN and nothing more: execve() gives root what is in the bounding set.
 */
#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helper/helper.h"

bool privs_have(unsigned cap) {
        return capng_get_caps_process() == 0 && capng_have_capability(CAPNG_PERMITTED, cap);
}

int privs_become_root(void) {
        uid_t u[3];
        gid_t g[3];

        if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 ||
            getresgid(&g[0], &g[1], &g[2]) < 0 || getresuid(&u[0], &u[1], &u[2]) < 0)
                return -errno;
        return u[0] | u[1] | u[2] | g[0] | g[1] | g[2] | (unsigned)getgroups(0, NULL) ? -EPERM : 0;
}

/* Each of these must fail; one that does not ends the run. */
static bool to_be_had_again(void) {
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct all[2] = { { ~0U, ~0U, 0 }, { ~0U, ~0U, 0 } };

        return syscall(SYS_capset, &head, all) == 0 || setgroups(1, &(gid_t){ 1 }) == 0 ||
               setresgid(1, 1, 1) == 0 || setresuid(1, 1, 1) == 0 ||
               prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
}

static bool proved(bool audit) {
        if (capng_get_caps_process() < 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
                return false;
        /* Up to the first one that the kernel does not know. */
        for (unsigned cap = 0; prctl(PR_CAPBSET_READ, (unsigned long)cap) >= 0; cap++) {
                int kept = cap == CAP_CHOWN || (audit && cap == CAP_AUDIT_WRITE);

                if (capng_have_capability(CAPNG_EFFECTIVE, cap) != kept ||
                    capng_have_capability(CAPNG_PERMITTED, cap) != kept ||
                    capng_have_capability(CAPNG_INHERITABLE, cap) ||
                    prctl(PR_CAPBSET_READ, (unsigned long)cap) != (cap == CAP_CHOWN) ||
                    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, (unsigned long)cap, 0, 0) != 0)
                        return false;
        }
        return !to_be_had_again();
}

int privs_drop(void) {
        bool audit = privs_have(CAP_AUDIT_WRITE);

        capng_clear(CAPNG_SELECT_ALL);
        capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET, CAP_CHOWN);
        if (audit)
                capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_AUDIT_WRITE);
        if (capng_apply(CAPNG_SELECT_ALL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -EPERM;
        return proved(audit) ? 0 : -EPERM;
}
