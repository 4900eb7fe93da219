/* SPDX-License-Identifier: MIT */
#include "host.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void host_setenv(const char *name, const char *value) {
    setenv(name, value, 1);
}

bool host_make_folder(char *buf, size_t size) {
    const char *tmp = getenv("TMPDIR");
    int n = snprintf(buf, size, "%s/softndk-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return n > 0 && (size_t)n < size && mkdtemp(buf);
}

void host_remove_folder(const char *path) {
    rmdir(path);
}

/* ---- the child ---- */

static pid_t child;
static int from_child = -1;

bool host_child_start(const char *role, uint16_t port) {
    char number[16], *argv[] = { "child", "--child", (char *)(uintptr_t)role, number, NULL };
    posix_spawn_file_actions_t actions;
    int fd[2];
    snprintf(number, sizeof number, "%u", port);
    if (pipe(fd) != 0) return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd[1], 1);
    posix_spawn_file_actions_addclose(&actions, fd[0]);
    bool ok = posix_spawn(&child, "/proc/self/exe", &actions, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(fd[1]);
    from_child = fd[0];
    return ok;
}

bool host_child_says(uint32_t within_ms, unsigned *number) {
    char line[16];
    size_t n = 0;
    struct pollfd p = { .fd = from_child, .events = POLLIN };
    while (n < sizeof line - 1) {
        if (poll(&p, 1, (int)within_ms) != 1 || read(from_child, line + n, 1) != 1) return false;
        if (line[n] == '\n') break;
        n++;
    }
    line[n] = 0;
    *number = (unsigned)strtoul(line, NULL, 10);
    return true;
}

bool host_child_kill(void) {
    bool ok = kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child;
    close(from_child);
    return ok;
}

void host_limit_life(unsigned seconds) {
    alarm(seconds);
}

void host_wait_to_be_killed(void) {
    for (;;)
        pause();
}

bool host_killed_ends(void) {
    return true;
}

/* ---- the network ---- */

bool host_enter_namespace(void) {
    struct ifreq ifr;
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    memset(&ifr, 0, sizeof ifr);
    strcpy(ifr.ifr_name, "lo");
    bool up = ioctl(s, SIOCGIFFLAGS, &ifr) == 0;
    ifr.ifr_flags |= IFF_UP;
    up = up && ioctl(s, SIOCSIFFLAGS, &ifr) == 0;
    close(s);
    if (!up) exit(77);
    return system("PATH=$PATH:/sbin:/usr/sbin ip route add unreachable 10.1.0.0/16") == 0;
}

static struct sockaddr_in loopback(uint16_t port) {
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

static int taken[65536];
static unsigned taken_from, taken_to;

bool host_take_ports(uint16_t first, const char **why) {
    static char text[64];
    struct rlimit rl;
    rlim_t need = 65536u - first + 500;
    getrlimit(RLIMIT_NOFILE, &rl);
    snprintf(text, sizeof text, "no more than %lu files may be open", (unsigned long)rl.rlim_max);
    *why = text;
    if (rl.rlim_max < need) return false;
    rl.rlim_cur = need;
    if (setrlimit(RLIMIT_NOFILE, &rl) != 0) return false;
    taken_from = first;
    for (taken_to = first; taken_to < 65536; taken_to++) {
        struct sockaddr_in a = loopback((uint16_t)taken_to);
        taken[taken_to] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (taken[taken_to] < 0) return false;
        (void)!bind(taken[taken_to], (struct sockaddr *)&a, sizeof a); /* somebody has it */
    }
    return true;
}

void host_give_ports(void) {
    for (unsigned i = taken_from; i < taken_to; i++)
        close(taken[i]);
    taken_from = taken_to = 0;
}

static int shared = -1;

uint16_t host_connect_shared(uint16_t port) {
    int one = 1;
    struct sockaddr_in at = loopback(0), to = loopback(port);
    socklen_t len = sizeof at;
    shared = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = setsockopt(shared, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
              setsockopt(shared, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) == 0 &&
              bind(shared, (struct sockaddr *)&at, sizeof at) == 0 &&
              connect(shared, (struct sockaddr *)&to, sizeof to) == 0 &&
              getsockname(shared, (struct sockaddr *)&at, &len) == 0;
    return ok ? ntohs(at.sin_port) : 0;
}

void host_end_shared(void) {
    close(shared);
}
