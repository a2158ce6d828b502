/*
 * The only handlers of signals in this program. They do what has to be done before the end, by calls that POSIX
 * allows there (tcsetattr, tcgetpgrp, write), and then let the signal do what it does to any program.
 */
#include "cli/cli_tty.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct {
        volatile sig_atomic_t in;
        int fd;
        struct termios was, now;
        const char *on, *off;
} entered;

static void put(const char *s) {
        for (size_t len = strlen(s); len > 0;) {
                ssize_t n = write(STDOUT_FILENO, s, len);

                if (n <= 0)
                        return;
                s += n;
                len -= (size_t)n;
        }
}

/* A terminal that another job has now is that job's: a change would stop us or disturb it. Where it is not our
 * controlling terminal there are no jobs. */
static bool in_foreground(void) {
        pid_t group = tcgetpgrp(entered.fd);

        return group < 0 || group == getpgrp();
}

/* Not TCSADRAIN, which waits for a terminal that may take nothing any more. */
static void set(const struct termios *t) {
        while (tcsetattr(entered.fd, TCSANOW, t) < 0 && errno == EINTR)
                ;
}

void cli_tty_leave(void) {
        if (!entered.in)
                return;
        if (in_foreground()) {
                put(entered.off);
                set(&entered.was);
        }
        entered.in = 0;
}

void cli_tty_again(void) {
        if (!entered.in || !in_foreground())
                return;
        set(&entered.now);
        put(entered.on);
}

/* Lets @signo, for which we have a handler, do what it does to a program without one. */
static void obey(int signo) {
        struct sigaction sa = { .sa_handler = SIG_DFL };
        sigset_t set;

        sigaction(signo, &sa, NULL);
        raise(signo);
        sigemptyset(&set);
        sigaddset(&set, signo);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void on_fatal(int signo) {
        cli_tty_leave();
        obey(signo);
}

static void handle(int signo, void (*handler)(int)) {
        struct sigaction sa = { .sa_handler = handler }, was;

        sigfillset(&sa.sa_mask);
        if (sigaction(signo, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
                sigaction(signo, &sa, NULL);
}

/* ^Z, where it is not somebody else's. In a job that nobody could bring back it does nothing. */
static void on_stop(int signo) {
        int error = errno;

        cli_tty_leave();
        obey(signo);
        entered.in = 1;
        handle(signo, on_stop);
        cli_tty_again();
        errno = error;
}

static void guard(enum cli_tty_mode mode) {
        static const int fatal[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP,   SIGABRT, SIGBUS,
                                     SIGFPE,  SIGUSR1, SIGSEGV, SIGUSR2, SIGALRM,   SIGTERM, SIGXCPU,
                                     SIGXFSZ, SIGPROF, SIGIO,   SIGPWR,  SIGVTALRM, SIGSYS };

        for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
                handle(fatal[i], on_fatal);
        handle(SIGPIPE, SIG_IGN);
        if (mode == CLI_TTY_KEYS)
                handle(SIGTSTP, on_stop);
}

static void change(struct termios *t, enum cli_tty_mode mode) {
        t->c_cc[VMIN] = 1;
        t->c_cc[VTIME] = 0;
        t->c_oflag &= ~(tcflag_t)OPOST;
        if (mode == CLI_TTY_KEYS) {
                t->c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL);
                return;
        }
        /* What the line discipline does is the other terminal's to do. Flow control and signals, too. */
        t->c_iflag &= ~(tcflag_t)(ISTRIP | INLCR | IGNCR | ICRNL | IUCLC | IXON | IXANY | IXOFF |
                                  PARMRK | BRKINT);
        t->c_iflag |= IGNPAR;
        t->c_lflag &= ~(tcflag_t)(ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHONL | IEXTEN);
}

int cli_tty_enter(int fd, enum cli_tty_mode mode, const char *on, const char *off) {
        if (tcgetattr(fd, &entered.was) < 0)
                return -errno;
        entered.fd = fd;
        entered.on = on;
        entered.off = off;
        entered.now = entered.was;
        change(&entered.now, mode);
        guard(mode);
        entered.in = 1;
        /* In the background this stops us, until the user brings us to the front. */
        set(&entered.now);
        put(on);
        return 0;
}

bool cli_tty_size(uint16_t *ret_rows, uint16_t *ret_cols) {
        struct winsize w;

        *ret_rows = *ret_cols = 0;
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (ioctl(fd, TIOCGWINSZ, &w) == 0) {
                        *ret_rows = w.ws_row;
                        *ret_cols = w.ws_col;
                        return w.ws_row > 0 && w.ws_col > 0;
                }
        return false;
}
