/* Of manager_rig.h: what lives as long as the program. Trail, state and configs; the kernel's trail is let alone. */
#pragma once

static struct audit *rig_audit;
static char rig_state_dir[64];
static struct config *rig_configs[2];

static inline struct config *rig_config(const char *text) {
        struct errmsg e;
        struct config *c;

        if (config_load_memory("rig", text, strlen(text), &c, &e) < 0) {
                fprintf(stderr, "%s\n", e.text);
                abort();
        }
        return c;
}

/* The files have no names any more: nothing is left behind, however it ends. */
static inline void rig_open_trail(void) {
        char dir[] = "/tmp/fuzz-manager-XXXXXX", trail[64], state[64];
        struct config c = { .audit_file = trail, .audit_required = TRI_FALSE };
        struct errmsg e;

        check(mkdtemp(dir));
        snprintf(trail, sizeof(trail), "%s/trail", dir);
        snprintf(state, sizeof(state), "%s/execs", dir);
        audit_free(rig_audit);
        check(audit_new(&c, false, state, &rig_audit, &e) == 0);
        unlink(trail);
        unlink(state);
        rmdir(dir);
}

static inline void rig_remove_state_dir(void) {
        char sessions[80];

        snprintf(sessions, sizeof(sessions), "%s/sessions", rig_state_dir);
        rmdir(sessions);
        rmdir(rig_state_dir);
}

static inline void rig_make_state_dir(void) {
        snprintf(rig_state_dir, sizeof(rig_state_dir), "/tmp/fuzz-manager-state-XXXXXX");
        check(mkdtemp(rig_state_dir));
        atexit(rig_remove_state_dir);
}

/* The kernel's trail is the machine's: nothing of this belongs there. */
static inline void rig_drop_audit_write(void) {
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct caps[2];

        check(syscall(SYS_capget, &head, caps) == 0);
        caps[0].effective &= ~(1u << CAP_AUDIT_WRITE);
        caps[0].permitted &= ~(1u << CAP_AUDIT_WRITE);
        check(syscall(SYS_capset, &head, caps) == 0);
}

static inline void rig_init(void) {
        static const char limits[] = "limits: {command_bytes: 200, timeout: 100ms, timeout_max: 500ms, "
                                     "sessions: 2, execs: 6, queued: 3}\n"
                                     "waf_mode: \"off\"\n";
        char text[1024];

        log_set_level((enum log_priority)0);
        rig_drop_audit_write();
        rig_make_state_dir();
        snprintf(text, sizeof(text),
                 "%s"
                 "pool: {size: 1, max_sandboxes: 2, cold_after: 0, queue_limit: 2, max_uses: 3, "
                 "session_ttl: 20s}\n"
                 "profiles:\n"
                 "  once: {reuse: replace, size: 0, limits: {output_bytes: 20}, image: \"one:2@sha256:"
                 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}\n"
                 "  wait: {on_empty: wait, size: 0, limits: {exec_rate: 3}}\n",
                 limits);
        rig_configs[0] = rig_config(text);
        snprintf(text, sizeof(text),
                 "%s"
                 "pool: {size: 2, max_sandboxes: 2, cold_after: 100ms, pids_limit: 64, max_age: 1ms}\n"
                 "profiles: {wait: {on_empty: wait, size: 1}}\n",
                 limits);
        rig_configs[1] = rig_config(text);
}

/* The lowest descriptor that is free. */
static inline int rig_low_fd(void) {
        int fd = dup(STDERR_FILENO);

        close(fd);
        return fd;
}

static inline void rig_suppressed(void *userdata, uid_t uid, uint64_t requests, uint64_t ms) {
        check(audit_suppressed(((struct rig *)userdata)->m.audit, uid, requests, ms) == 0);
}
