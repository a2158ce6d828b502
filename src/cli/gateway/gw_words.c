/* What becomes of sshd's environment and of the client's command. */
#include <string.h>

#include "cli/gateway/gateway.h"

/* As sshd_config says in AcceptEnv, and no longer than a locale's name is. */
static bool is_locale(const char *var) {
        const char *value = strchr(var, '=');
        size_t name = value ? (size_t)(value - var) : 0;

        if (name == 0 || strlen(value) > 128)
                return false;
        if (name == 4 && memcmp(var, "LANG", 4) == 0)
                return true;
        return name > 3 && memcmp(var, "LC_", 3) == 0 &&
               strspn(var + 3, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == name - 3;
}

static bool passes(const char *var, bool tty) {
        static const char *const always[] = { "USER=", "LOGNAME=", "SSH_CLIENT=", "SSH_CONNECTION=" };

        for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
                if (strncmp(var, always[i], strlen(always[i])) == 0)
                        return true;
        return is_locale(var) || (tty && strncmp(var, "TERM=", 5) == 0);
}

/* HOME and PATH are the sandbox's. */
uint32_t gw_env_make(char **env, bool tty, const char **ret) {
        uint32_t n = 0;

        ret[n++] = "SHELL=/bin/bash";
        /* sshd's terminal has a name that is none in the sandbox; that of the command's own always is this one, too. */
        if (tty)
                ret[n++] = "SSH_TTY=/dev/tty";
        for (; *env && n < GW_ENV_MAX; env++)
                if (passes(*env, tty))
                        ret[n++] = *env;
        return n;
}

uint32_t gw_command(const char *shell, const char *said, const char **ret) {
        ret[0] = shell;
        ret[1] = said ? "-c" : "-l";
        ret[2] = said;
        return said ? 3 : 2;
}
