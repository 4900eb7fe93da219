/* SPDX-License-Identifier: MIT
 * cmd_cat.c - `softnd cat`: one file, or stream, from one machine to another. Options only; the
 * work is in cat_send.c and cat_recv.c.
 */
#include "cmd.h"

#include <string.h>
#include "cat_link.h"
#include "sys.h"
#include "text.h"

#define CHUNK_DEFAULT (1u << 20)
#define CHUNK_MAX (256u << 20)
#define SLOTS_DEFAULT 8

enum { OPT_SEND, OPT_RECV, OPT_LISTEN, OPT_PORT, OPT_MODE, OPT_CHUNK, OPT_DEPTH, OPT_HELP };

static const struct args_option options[] = {
    [OPT_SEND] = { 's', "send", "FILE", "send FILE, or standard input for -" },
    [OPT_RECV] = { 'r', "recv", "FILE", "receive into FILE, or to standard output for -" },
    [OPT_LISTEN] = { 'l', "listen", "ADDR[:PORT]",
                     "with --recv: listen there (default: everywhere)" },
    [OPT_PORT] = { 'p', "port", "PORT", "port, 0 for a free one with --recv (default 7571)" },
    [OPT_MODE] = { 'm', "mode", "MODE", "with --send: write, read or send (default write)" },
    [OPT_CHUNK] = { 'c', "chunk", "SIZE", "with --send: bytes per request (default 1M)" },
    [OPT_DEPTH] = { 'd', "depth", "N", "with --send: requests under way (default 8)" },
    [OPT_HELP] = { 'h', "help", NULL, "this text" },
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

static int print_help(void) {
    puts(
        "Usage: softnd cat --recv FILE [--listen ADDR[:PORT]]\n"
        "       softnd cat --send FILE HOST[:PORT] [--mode write|read|send]\n"
        "\n"
        "Moves one file between two machines through NetworkDirect, and verifies it (SHA-256).\n"
        "Start the receiver first. How the data travels is the sender's choice:\n"
        "  write  the sender writes into the receiver's memory (RDMA Write)\n"
        "  read   the receiver reads from the sender's memory (RDMA Read)\n"
        "  send   ordinary messages (Send and Receive)\n"
        "The received file appears under its name when it is complete and verified, not before.\n");
    args_print_help(options, OPTION_COUNT, stdout);
    puts("\nExit code: 0 the whole file arrived and is right, 1 failure, 2 wrong usage.");
    return EXIT_DONE;
}

/* Options that make no sense at the end that was chosen are errors, not silently ignored. */
static int check_ends(const char *send, const char *recv, const char *listen, const char *host,
                      bool sender_option) {
    if (!send == !recv) return cmd_usage("cat", "give either --send FILE or --recv FILE");
    if (send && !host) return cmd_usage("cat", "--send needs a HOST to send to");
    if (send && listen) return cmd_usage("cat", "--listen goes with --recv");
    if (recv && host) return cmd_usage("cat", "--recv takes no HOST; use --listen ADDR");
    if (recv && sender_option)
        return cmd_usage("cat", "--mode, --chunk and --depth are the sender's choice");
    return EXIT_DONE;
}

int cmd_cat(int argc, char **argv) {
    struct cat_settings set = { .port = NDC_PORT_DEFAULT,
                                .mode = CAT_WRITE,
                                .slots = SLOTS_DEFAULT,
                                .chunk_bytes = CHUNK_DEFAULT };
    const char *send = NULL, *recv = NULL, *listen = NULL, *host = NULL, *where;
    char name[TEXT_HOST_MAX] = "";
    bool sender_option = false;
    struct args a;
    uint32_t number;
    uint64_t size;
    HRESULT hr;
    int opt, code;

    args_init(&a, argc, argv, options, OPTION_COUNT);
    while ((opt = args_next(&a)) != ARGS_END) {
        switch (opt) {
        case OPT_SEND:
            send = a.value;
            break;
        case OPT_RECV:
            recv = a.value;
            break;
        case OPT_LISTEN:
            listen = a.value;
            break;
        case OPT_PORT:
            if (!text_parse_u32(a.value, 0, 65535, &number))
                return cmd_usage("cat", "bad port %s", a.value);
            set.port = (uint16_t)number;
            break;
        case OPT_MODE:
            if (!cat_parse_mode(a.value, &set.mode))
                return cmd_usage("cat", "bad mode %s: write, read or send", a.value);
            sender_option = true;
            break;
        case OPT_CHUNK:
            if (!text_parse_size(a.value, &size) || size < 1 || size > CHUNK_MAX)
                return cmd_usage("cat", "bad chunk size %s: 1 to 256M", a.value);
            set.chunk_bytes = (uint32_t)size;
            sender_option = true;
            break;
        case OPT_DEPTH:
            if (!text_parse_u32(a.value, 1, CAT_SLOTS_MAX, &set.slots))
                return cmd_usage("cat", "bad depth %s: 1 to %d", a.value, CAT_SLOTS_MAX);
            sender_option = true;
            break;
        case OPT_HELP:
            return print_help();
        case ARGS_OPERAND:
            if (host) return cmd_usage("cat", "one HOST is enough: %s", a.value);
            host = a.value;
            break;
        default:
            return cmd_usage("cat", "%s", a.error);
        }
    }
    code = check_ends(send, recv, listen, host, sender_option);
    if (code != EXIT_DONE) return code;
    where = send ? host : listen;
    if (where && !text_split_host(where, name, &set.port))
        return cmd_usage("cat", "bad address %s", where);
    if (send && !name[0]) return cmd_usage("cat", "--send needs a HOST to send to");
    set.host = name;
    set.file = send ? send : recv;

    sys_catch_stop();
    hr = ndc_start();
    if (FAILED(hr)) return cmd_fail("cat", "NetworkDirect cannot be started: %s", ndc_text(hr));
    code = send ? cat_send(&set) : cat_recv(&set);
    ndc_stop();
    return code;
}
