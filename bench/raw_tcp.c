/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* BENCH_CONGESTION names another congestion control than the system's default. */
static void choose_congestion_control(int s) {
    const char *name = getenv("BENCH_CONGESTION");
    if (name && setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)))
        DIE("no congestion control %s", name);
}

static void connected_pair(int *a, int *b) {
    struct sockaddr_in sin = { .sin_family = AF_INET };
    socklen_t len = sizeof sin;
    int one = 1, l = socket(AF_INET, SOCK_STREAM, 0);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *a = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(l, (struct sockaddr *)&sin, sizeof sin) || listen(l, 1) ||
        getsockname(l, (struct sockaddr *)&sin, &len) ||
        connect(*a, (struct sockaddr *)&sin, sizeof sin))
        DIE("cannot make a TCP connection over loopback");
    *b = accept(l, NULL, NULL);
    close(l);
    for (int i = 0; i < 2; i++) {
        int s = i ? *a : *b;
        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        fcntl(s, F_SETFL, O_NONBLOCK);
        choose_congestion_control(s);
    }
}

static void put_all(int s, const char *buf, size_t n) {
    while (n) {
        ssize_t m = send(s, buf, n, MSG_NOSIGNAL);
        if (m < 0 && errno != EAGAIN) DIE("send: %s", strerror(errno));
        if (m > 0) {
            buf += m;
            n -= (size_t)m;
        }
    }
}

static void get_all(int s, char *buf, size_t n) {
    while (n) {
        ssize_t m = recv(s, buf, n, 0);
        if (m == 0 || (m < 0 && errno != EAGAIN)) DIE("recv failed");
        if (m > 0) {
            buf += m;
            n -= (size_t)m;
        }
    }
}

static double latency_us(uint32_t size, uint32_t rounds, bool blocking) {
    int a, b;
    char *buf = calloc(1, size);
    double *samples = calloc(rounds, sizeof *samples);
    connected_pair(&a, &b);
    if (blocking) {
        fcntl(a, F_SETFL, 0);
        fcntl(b, F_SETFL, 0);
    }
    pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        for (uint32_t i = 0; i < rounds; i++) {
            get_all(b, buf, size);
            put_all(b, buf, size);
        }
        _exit(0);
    }
    bench_pin(0);
    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t t = bench_now_ns();
        put_all(a, buf, size);
        get_all(a, buf, size);
        samples[i] = (double)(bench_now_ns() - t) / 2000.0;
    }
    waitpid(child, NULL, 0);
    close(a);
    close(b);
    double median = bench_median(samples, rounds);
    free(samples);
    free(buf);
    return median;
}

double raw_tcp_latency_us(uint32_t size, uint32_t rounds) {
    return latency_us(size, rounds, false);
}

double raw_tcp_blocking_latency_us(uint32_t size, uint32_t rounds) {
    return latency_us(size, rounds, true);
}

double raw_tcp_stream_gbs(uint32_t size, uint32_t count) {
    int a, b;
    char *buf = calloc(1, size), done;
    connected_pair(&a, &b);
    pid_t child = fork();
    if (child == 0) {
        bench_pin(1);
        for (uint32_t i = 0; i < count; i++)
            get_all(b, buf, size);
        put_all(b, "d", 1);
        _exit(0);
    }
    bench_pin(0);
    uint64_t t = bench_now_ns();
    for (uint32_t i = 0; i < count; i++)
        put_all(a, buf, size);
    get_all(a, &done, 1);
    double seconds = (double)(bench_now_ns() - t) / 1e9;
    waitpid(child, NULL, 0);
    close(a);
    close(b);
    free(buf);
    return (double)size * count / seconds / 1e9;
}
