/* Counters of the port, which anyone may read: what has grown while the pair was at work. */
#include <stdio.h>
#include <string.h>

#include "doctor/doctor.h"

static const char *const names[] = {
    "counters/port_xmit_wait",
    "counters/symbol_error",
    "counters/link_downed",
    "hw_counters/np_cnp_sent",
    "hw_counters/rp_cnp_handled",
    "hw_counters/np_ecn_marked_roce_packets",
    "hw_counters/out_of_sequence",
    "hw_counters/packet_seq_err",
    "hw_counters/local_ack_timeout_err",
    "hw_counters/rnr_nak_retry_err",
    "hw_counters/roce_adp_retrans",
};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

static bool read_counter(const struct doctor_port *port, const char *name,
                         unsigned long long *value)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/ports/%u/%s", port->context->device->ibdev_path, port->number,
             name);
    FILE *f = fopen(path, "r");
    bool is_read = f != NULL && fscanf(f, "%llu", value) == 1;
    if (f != NULL) {
        fclose(f);
    }
    return is_read;
}

void doctor_counters(struct doctor *d, bool is_before)
{
    static unsigned long long before[NAMES];
    unsigned long long value;
    char grown[DOCTOR_TEXT] = "";
    int known = 0;

    for (int i = 0; i < NAMES && d->port.context != NULL; i++) {
        if (!read_counter(&d->port, names[i], &value)) {
            continue;
        }
        known++;
        if (!is_before && value != before[i]) {
            size_t at = strlen(grown);
            snprintf(grown + at, sizeof(grown) - at, "%s%s +%llu", at > 0 ? ", " : "",
                     strchr(names[i], '/') + 1, value - before[i]);
        }
        before[i] = value;
    }
    if (!is_before && d->port.context != NULL) {
        doctor_say(d, grown[0] != '\0' ? DOCTOR_NOTE : DOCTOR_FACT, "counters", "%s",
                   grown[0] != '\0' ? grown
                   : known > 0      ? "none of congestion or errors has grown"
                                    : "the port has none of congestion or errors");
    }
}
