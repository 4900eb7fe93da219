/* SPDX-License-Identifier: MIT
 * wire.c - a cable between two network interfaces that delays and loses packets, for tests in
 * network namespaces. The kernel's own emulator (netem) is a module that many machines lack.
 *
 *   wire IF_A IF_B DELAY_US LOSS_PERMILLE SEED
 *
 * Says "ready" on stdout, then carries frames in both directions until it is killed; each is lost
 * with the given probability, from a sequence that the seed determines. Frames may be larger than
 * the MTU (segmentation is left to the receiver, as between virtual interfaces), so the header
 * that describes them travels along.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>

#define FRAME_MAX (sizeof(struct virtio_net_hdr) + 65536 + 64)
/* Frames under way; more are lost, as in any queue. */
#define QUEUE_MAX 2048

struct frame {
    uint64_t due_ns;
    size_t len;
    uint8_t *bytes;
};

struct direction {
    int from, to;
    struct frame queue[QUEUE_MAX];
    size_t head, count;
    unsigned long carried, lost;
};

static struct direction ways[2];
static volatile sig_atomic_t stopping;

static void on_signal(int sig) {
    stopping = sig;
}

static uint64_t now_ns(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t next_random(uint64_t *state) { /* xorshift */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int open_end(const char *name) {
    struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;
    int room = 32 << 20;

    at.sll_ifindex = (int)if_nametoindex(name);
    if (fd < 0 || !at.sll_ifindex ||
        setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof yes) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes) != 0 ||
        bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        perror(name);
        exit(1);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    return fd;
}

/* Takes every frame that is there. */
static void take(struct direction *d, uint64_t delay_ns, unsigned loss, uint64_t *seed) {
    static uint8_t buf[FRAME_MAX];

    for (;;) {
        ssize_t n = recv(d->from, buf, sizeof buf, MSG_TRUNC);
        struct frame *f;
        if (n <= 0) return;
        if ((size_t)n > sizeof buf || d->count == QUEUE_MAX || next_random(seed) % 1000 < loss) {
            d->lost++;
            continue;
        }
        f = &d->queue[(d->head + d->count) % QUEUE_MAX];
        f->bytes = malloc((size_t)n);
        if (!f->bytes) continue;
        memcpy(f->bytes, buf, (size_t)n);
        f->len = (size_t)n;
        f->due_ns = now_ns() + delay_ns;
        d->count++;
    }
}

/* Gives on what is due; returns the time of the next one. */
static uint64_t give(struct direction *d) {
    uint64_t now = now_ns();

    while (d->count) {
        struct frame *f = &d->queue[d->head];
        if (f->due_ns > now) return f->due_ns;
        /* An interface that is down or full loses it. */
        if (send(d->to, f->bytes, f->len, 0) == (ssize_t)f->len)
            d->carried++;
        else
            d->lost++;
        free(f->bytes);
        d->head = (d->head + 1) % QUEUE_MAX;
        d->count--;
    }
    return UINT64_MAX;
}

int main(int argc, char **argv) {
    struct sigaction sa = { .sa_handler = on_signal };
    uint64_t delay_ns, seed;
    unsigned loss;
    int a, b;

    if (argc != 6) {
        fprintf(stderr, "usage: wire IF_A IF_B DELAY_US LOSS_PERMILLE SEED\n");
        return 2;
    }
    delay_ns = strtoull(argv[3], NULL, 10) * 1000;
    loss = (unsigned)strtoul(argv[4], NULL, 10);
    seed = strtoull(argv[5], NULL, 10) * 2 + 1; /* never 0 */
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    a = open_end(argv[1]);
    b = open_end(argv[2]);
    ways[0].from = ways[1].to = a;
    ways[0].to = ways[1].from = b;
    puts("ready");
    fflush(stdout);

    while (!stopping) {
        struct pollfd fds[2] = { { .fd = a, .events = POLLIN }, { .fd = b, .events = POLLIN } };
        uint64_t first = give(&ways[0]), second = give(&ways[1]), now = now_ns();
        struct timespec wait = { 1, 0 };
        if (second < first) first = second;
        if (first != UINT64_MAX) {
            uint64_t left = first > now ? first - now : 0;
            wait = (struct timespec){ (time_t)(left / 1000000000u), (long)(left % 1000000000u) };
        }
        if (ppoll(fds, 2, &wait, NULL) < 0 && errno != EINTR) break;
        take(&ways[0], delay_ns, loss, &seed);
        take(&ways[1], delay_ns, loss, &seed);
    }
    for (int i = 0; i < 2; i++)
        printf("%s: %lu carried, %lu lost\n", i ? "b to a" : "a to b", ways[i].carried,
               ways[i].lost);
    for (int i = 0; i < 2; i++)
        for (; ways[i].count; ways[i].count--, ways[i].head = (ways[i].head + 1) % QUEUE_MAX)
            free(ways[i].queue[ways[i].head].bytes);
    return 0;
}
