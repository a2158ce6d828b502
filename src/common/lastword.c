#include "common/lastword.h"

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#include "common/cleanup.h"

/* Connections that are kept to the end, so that nobody comes back at once. */
#define KEPT 8

static int64_t now_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void lastword(int listen_fd, unsigned ms, void (*tell)(int fd, void *userdata), void *userdata) {
        struct pollfd p = { .fd = listen_fd, .events = POLLIN };
        int kept[KEPT] = { -1, -1, -1, -1, -1, -1, -1, -1 };
        int64_t until = now_ms() + ms, left = 0;
        sigset_t none;

        /* Whoever does not want to wait for it can end it. */
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        for (unsigned i = 0; poll(&p, 1, (int)left) > 0; i++) {
                int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (fd >= 0) {
                        tell(fd, userdata);
                        close_fd(kept[i % KEPT]);
                        kept[i % KEPT] = fd;
                }
                left = until - now_ms();
                if (left <= 0)
                        break;
        }
        for (unsigned i = 0; i < KEPT; i++)
                close_fd(kept[i]);
}
