/* Manager and engine: do they answer, of which version are they, and what is known to be wrong with that version. */
#include "cli/doctor/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/doctor/debver.h"
#include "cli/doctor/escapes.h"
#include "common/escape.h"

#define TO_START "sudo hermes-sandbox start"
#define TO_START_ENGINE "sudo systemctl start docker # without systemd: sudo dockerd &"
#define TO_ENABLE "sudo hermes-docker-enable"
#define TRACKER "https://security-tracker.debian.org/tracker/source-package/"

static void pool(struct doctor *d, const json_t *p) {
        const char *name = doctor_json_str(p, "profile"), *why = doctor_json_str(p, "last_failure");
        json_int_t warm = json_integer_value(json_object_get(p, "warm"));
        json_int_t size = json_integer_value(json_object_get(p, "size"));

        if (warm > 0 || size == 0 || !*why)
                doctor_say(d, warm > 0 || size == 0 ? DOCTOR_OK : DOCTOR_WARNING,
                           warm > 0 || size == 0 ? NULL : "hermes-sandbox status",
                           "pool %s: %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
                           " sandboxes are warm",
                           name, warm, size);
        else
                doctor_say(d, DOCTOR_FAILURE, "hermes-sandbox logs -n 20",
                           "pool %s: no sandbox is warm: %s", name, why);
}

/* What the manager says of the way from broker to engine. */
static void broker(struct doctor *d) {
        const json_t *engine = json_object_get(d->status, "engine");
        const char *state = doctor_json_str(engine, "state"), *why = doctor_json_str(engine, "why");

        if (strcmp(state, "up") == 0)
                doctor_say(d, DOCTOR_OK, NULL, "the broker reaches the engine");
        else if (strcmp(state, "not enabled") == 0)
                doctor_say(d, DOCTOR_FAILURE, TO_ENABLE, "the broker may not reach the engine: %s", why);
        else
                doctor_say(d, DOCTOR_FAILURE, TO_START_ENGINE,
                           "the broker does not reach the engine: %s", *why ? why : "it is down");
}

void check_manager(struct doctor *d) {
        const char *version = doctor_json_str(d->status, "version");
        const json_t *pools, *p;

        if (!d->status) {
                doctor_say(d, DOCTOR_FAILURE,
                           d->status_errno == -EACCES ? "sudo usermod -aG " DOCTOR_GROUP
                                                        " $(id -un) # then log in anew"
                                                      : TO_START,
                           "%s", d->status_error.text);
                return;
        }
        if (strcmp(version, VERSION) != 0)
                doctor_say(d, DOCTOR_WARNING, "sudo hermes-sandbox stop && " TO_START,
                           "the manager that runs is of version %s, this program of %s", version,
                           VERSION);
        else
                doctor_say(d, DOCTOR_OK, NULL, "hermes-sandboxd %s answers", version);
        broker(d);
        pools = json_object_get(d->status, "pools");
        for (size_t i = 0; (p = json_array_get(pools, i)); i++)
                pool(d, p);
}

/* --- the engine ------------------------------------------------------------------------------------ */

void check_engine(struct doctor *d) {
        const json_t *engine = json_object_get(d->status, "engine");

        if (d->version)
                doctor_say(d, DOCTOR_OK, NULL, "version %s, API %s, answers at %s",
                           doctor_json_str(d->version, "Version"),
                           doctor_json_str(d->version, "ApiVersion"), doctor_engine_socket(d));
        else if (d->uid == 0)
                doctor_say(d, DOCTOR_FAILURE, TO_START_ENGINE, "%s", d->engine_error.text);
        else if (strcmp(doctor_json_str(engine, "state"), "up") == 0)
                doctor_say(d, DOCTOR_OK, NULL, "version %s, API %s, answers the broker",
                           doctor_json_str(engine, "version"), doctor_json_str(engine, "api_version"));
        else
                doctor_say_needs_root(d, "the engine");
}

/* --- known escapes --------------------------------------------------------------------------------- */

/* One program, its package in Debian, and what is known of it. */
struct program {
        enum escape_of of;
        const char *name, *component, *package; /* in the engine's list of components, in Debian */
        char version[128], installed[128];      /* as the engine says; the package's, "" if it is none */
};

static bool component_version(const json_t *version, const char *name, char *buf, size_t cap) {
        const json_t *list = json_object_get(version, "Components"), *c;

        for (size_t i = 0; (c = json_array_get(list, i)); i++)
                if (strcmp(doctor_json_str(c, "Name"), name) == 0)
                        return snprintf(buf, cap, "%s", doctor_json_str(c, "Version")) < (int)cap;
        return false;
}

/* Does the version that runs come from that package? "1.1.5+ds1" is of 1.1.5+ds1-1+deb12u1. */
static bool comes_from(const char *version, const char *package) {
        size_t n = strlen(version);

        return n > 0 && strncmp(version, package, n) == 0 && strchr("-+~", package[n]);
}

static void judge(struct doctor *d, const struct program *p) {
        const char *package = p->installed[0] ? p->installed : NULL, *fixed;
        unsigned n_known = 0, n_open = 0, n_unsure = 0;
        char unsure[600], mend[128];
        struct text t;

        text_init(&t, unsure, sizeof(unsure));
        snprintf(mend, sizeof(mend), "sudo apt-get install --only-upgrade %s",
                 package                  ? p->package
                 : p->of == ESCAPE_ENGINE ? "docker-ce"
                                          : "containerd.io");
        for (size_t i = 0; i < n_escapes; i++) {
                const struct escape *x = &escapes[i];

                if (x->of != p->of)
                        continue;
                n_known++;
                switch (escape_judge(x, p->version, package, &fixed)) {
                case ESCAPE_OPEN:
                        n_open++;
                        doctor_say(d, x->from_inside ? DOCTOR_FAILURE : DOCTOR_WARNING, mend,
                                   "%s: %s; %s %s has it, %s has not%s", x->id, x->what, p->name,
                                   package ? package : p->version, fixed,
                                   x->from_inside ? "" : "; hermes-sandbox itself never does that");
                        break;
                case ESCAPE_UNSURE:
                        text_addf(&t, "%s%s (mended in %s)", n_unsure++ ? ", " : "", x->id, fixed);
                        break;
                case ESCAPE_UNKNOWN:
                        doctor_say(d, DOCTOR_WARNING, NULL, "%s says no version that makes sense: %s",
                                   p->name, p->version);
                        return;
                case ESCAPE_FIXED:
                        break;
                }
        }
        if (n_unsure)
                doctor_say(d, DOCTOR_WARNING, mend,
                           "%s %s is below upstream's number for %s; Debian may have mended it: " TRACKER
                           "%s",
                           p->name, package, unsure, p->package);
        if (n_open + n_unsure == 0)
                doctor_say(d, DOCTOR_OK, NULL, "%s %s has none of the %u that are known of it", p->name,
                           package ? package : p->version, n_known);
}

void check_escapes(struct doctor *d) {
        struct program programs[] = {
                { .of = ESCAPE_RUNC, .name = "runc", .component = "runc", .package = "runc" },
                { .of = ESCAPE_ENGINE,
                  .name = "the engine",
                  .component = "Engine",
                  .package = "docker.io" },
        };
        const char *told = doctor_json_str(json_object_get(d->status, "engine"), "version");
        char debian[128];
        /* The manager tells the engine's version alone. If that is Debian's, so is its runc. */
        bool all_debian = debver_installed(d, "docker.io", debian, sizeof(debian)) == 0 &&
                          comes_from(told, debian);

        for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
                struct program *p = &programs[i];

                if (debver_installed(d, p->package, debian, sizeof(debian)) < 0)
                        debian[0] = '\0';
                if (!d->version && all_debian)
                        snprintf(p->version, sizeof(p->version), "%.*s", (int)debver_upstream(debian),
                                 debian);
                else if (!component_version(d->version, p->component, p->version, sizeof(p->version)))
                        p->version[0] = '\0';
                if (comes_from(p->version, debian))
                        strcpy(p->installed, debian);
                if (p->version[0])
                        judge(d, p);
                else if (d->version)
                        doctor_say(d, DOCTOR_OK, NULL, "this engine is made without %s",
                                   p->of == ESCAPE_RUNC ? "runc" : "Docker's");
                else if (d->uid == 0)
                        doctor_say(d, DOCTOR_WARNING, TO_START_ENGINE,
                                   "the version of %s is not known until the engine answers", p->name);
                else
                        doctor_say_needs_root(d, p->name);
        }
}
