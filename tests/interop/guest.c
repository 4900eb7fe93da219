/* SPDX-License-Identifier: MIT
 * guest.c - see guest.h.
 */
#include "interop/guest.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "support/testing.h"

enum { ANSWER_MS = 60000 };

jmp_buf test_escape;

static FILE *peer_in, *peer_out;
static char answer_line[8192]; /* the last one */

static uint16_t setting_port(const char *name) {
    const char *text = getenv(name);
    return text ? (uint16_t)atoi(text) : 0;
}

uint16_t host_port(unsigned guest_port) {
    const char *text = getenv("SIW_PORTS");
    char want[16];
    snprintf(want, sizeof want, "%u=", guest_port);
    const char *at = text ? strstr(text, want) : NULL;
    if (!at) FAIL("SIW_PORTS does not name %u", guest_port);
    return (uint16_t)atoi(at + strlen(want));
}

void peer_hang_up(void) {
    if (peer_in) fclose(peer_in);
    if (peer_out) fclose(peer_out);
    peer_in = peer_out = NULL;
}

const char *read_answer(void) {
    if (!fgets(answer_line, sizeof answer_line, peer_in)) FAIL("the verbs peer hung up");
    answer_line[strcspn(answer_line, "\r\n")] = 0;
    return answer_line;
}

void peer_call(void) {
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(setting_port("SIW_CONTROL")),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if (to.sin_port == 0) SKIP("SIW_CONTROL is not set: run it with siw/run-vm.sh");
    peer_hang_up();
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = { .tv_sec = ANSWER_MS / 1000 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        FAIL("the verbs peer does not answer");
    peer_in = fdopen(fd, "r");
    peer_out = fdopen(dup(fd), "w");
    CHECK_STR(read_answer(), "ok ready");
}

void tell(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(peer_out, format, args);
    va_end(args);
    fputc('\n', peer_out);
    fflush(peer_out);
}

const char *last_answer(void) {
    return answer_line;
}

const char *answered(const char *file, int line) {
    const char *text = read_answer();
    if (strncmp(text, "ok", 2) != 0) {
        fprintf(stderr, "%s:%d: the verbs peer says: %s\n", file, line, text);
        longjmp(test_escape, 1);
    }
    return text[2] ? text + 3 : text + 2;
}
