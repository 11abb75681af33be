/*
 * UFM's JSON: the ports and the links of its REST interface, an array of flat rows, as
 * "NVIDIA UFM Enterprise REST API Guide" has them (v6.20 "Ports REST API", "Links REST API") and the
 * samples of Mellanox/ufm_sdk_3.0 (UFM_NDT_Plugin, ufm_samples/ports.json and links.json):
 *
 *   {"guid": "..", "number": 1, "lid": 2, "description": "Switch IB Port", "dname": "1",
 *    "node_description": "leaf1:1", "peer": "GUID_PORT", "peer_lid": 7, "peer_port_dname": "HCA-1/1",
 *    "peer_node_description": "host1 mlx5_0", "active_width": "4x", "active_speed": "HDR", ...}
 *
 *   {"source_guid": "..", "source_port": "37", "source_port_dname": "37",
 *    "source_port_node_description": "leaf1:37", "destination_guid": "..", ..., "width": "4x"}
 *
 * An adapter is named by its port's GUID, a switch by its own. Only rows of ports say LIDs. What is a
 * switch is told by its description, which ends in a colon and the port's own name; links have had none before v6.20.
 */
#include "fabric/graph/rate.h"
#include "fabric/read/draft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_SIZE = 512 };

/* What is wanted of an end, in a row of each kind. */
enum field { END_GUID, END_PORT, END_LID, END_DNAME, END_NAME, END_FIELDS };
enum { SPEED_AT = 2 * END_FIELDS, WIDTH_AT, KIND_AT, FIELDS };

static const char *const port_fields[FIELDS] = {
    "guid",         "number",       "lid",        "dname",           "node_description",
    "peer",         NULL,           "peer_lid",   "peer_port_dname", "peer_node_description",
    "active_speed", "active_width", "description"};

static const char *const link_fields[FIELDS] = {"source_guid",
                                                "source_port",
                                                NULL,
                                                "source_port_dname",
                                                "source_port_node_description",
                                                "destination_guid",
                                                "destination_port",
                                                NULL,
                                                "destination_port_dname",
                                                "destination_port_node_description",
                                                NULL,
                                                "width",
                                                NULL};

struct ufm {
    struct ibshift_draft draft;
    struct ibshift_lines *lines;
    int pushed; /* a character that was read too far, or 0 */
    char text[FIELDS][FIELD_SIZE];
};

static int fail(struct ufm *u, const char *reason)
{
    return ibshift_lines_fail(u->lines, -EINVAL, "%s", reason);
}

/* ---- JSON, as far as it goes here ---- */

static int next_char(struct ufm *u)
{
    int c = u->pushed != 0 ? u->pushed : ibshift_lines_char(u->lines);

    u->pushed = 0;
    return c;
}

static int next_token(struct ufm *u)
{
    int c;

    do {
        c = next_char(u);
    } while (c == ' ' || c == '\t' || c == '\n' || c == '\r');
    return c;
}

/* Behind the opening quote. text NULL: not wanted. Letters that are written by number become '?'. */
static int read_string(struct ufm *u, char *text)
{
    size_t length = 0;
    int c;

    while ((c = next_char(u)) != '"') {
        if (c == '\\') {
            c = next_char(u);
            for (int i = 0; c == 'u' && i < 4; i++) {
                next_char(u);
            }
            c = c == 'u' ? '?' : c;
        }
        if (c == EOF || c < ' ') {
            return fail(u, "a text without its end");
        }
        if (text != NULL && length + 1 == FIELD_SIZE) {
            return fail(u, "a text of more than 511 characters");
        }
        if (text != NULL) {
            text[length++] = (char)c;
        }
    }
    if (text != NULL) {
        text[length] = '\0';
    }
    return 0;
}

/* An array or an object, of which nothing is wanted; behind its opening bracket. */
static int skip_nested(struct ufm *u)
{
    for (size_t depth = 1; depth > 0;) {
        int c = next_token(u), rc = c == '"' ? read_string(u, NULL) : 0;

        if (rc != 0 || c == EOF) {
            return rc != 0 ? rc : fail(u, "the file ends within a value");
        }
        depth += c == '[' || c == '{';
        depth -= c == ']' || c == '}';
    }
    return 0;
}

static int read_value(struct ufm *u, char *text)
{
    size_t length = 0;
    int c = next_token(u);

    if (c == '"') {
        return read_string(u, text);
    }
    if (c == '[' || c == '{') {
        return skip_nested(u);
    }
    while (c > ' ' && strchr(",]}", c) == NULL) {
        if (length + 1 == FIELD_SIZE) {
            return fail(u, "a number of more than 511 digits");
        }
        if (text != NULL) {
            text[length] = (char)c;
            text[length + 1] = '\0';
        }
        length++;
        c = next_char(u);
    }
    if (text != NULL && strcmp(text, "null") == 0) {
        text[0] = '\0';
    }
    u->pushed = c;
    return length > 0 ? 0 : fail(u, "wants a value");
}

static char *slot_of(struct ufm *u, const char *name)
{
    for (int i = 0; i < FIELDS; i++) {
        if ((port_fields[i] != NULL && strcmp(port_fields[i], name) == 0) ||
            (link_fields[i] != NULL && strcmp(link_fields[i], name) == 0)) {
            return u->text[i];
        }
    }
    return NULL;
}

/* Behind the opening brace. */
static int read_object(struct ufm *u)
{
    char name[FIELD_SIZE];
    int c, rc = 0;

    for (int i = 0; i < FIELDS; i++) {
        u->text[i][0] = '\0';
    }
    while (rc == 0 && (c = next_token(u)) != '}') {
        if (c == ',') {
            continue;
        }
        rc = c == '"' ? read_string(u, name) : fail(u, "wants \"NAME\": VALUE");
        if (rc == 0 && next_token(u) != ':') {
            rc = fail(u, "wants a colon after a name");
        }
        rc = rc == 0 ? read_value(u, slot_of(u, name)) : rc;
    }
    return rc;
}

/* ---- rows ---- */

/* 0: a port that nothing is known of; 1: known; negative: err. */
static int read_end(struct ufm *u, int first, struct ibshift_draft_row *end)
{
    char(*text)[FIELD_SIZE] = u->text + first;
    const char *rest = ibshift_scan_hex(text[END_GUID], &end->guid);
    const char *port = text[END_PORT];
    size_t dname = strlen(text[END_DNAME]);

    if (rest != NULL && *rest == '_') { /* a peer: GUID_PORT */
        port = rest + 1;
        rest = "";
    }
    if (rest == NULL || *rest != '\0' || end->guid == 0) {
        return 0; /* "" or "N/A" */
    }
    end->kind = IBSHIFT_NODE_HCA;
    end->name = text[END_NAME];
    end->length = strlen(end->name);
    if (dname > 0 && end->length > dname + 1 && end->name[end->length - dname - 1] == ':' &&
        strcmp(end->name + end->length - dname, text[END_DNAME]) == 0) {
        end->kind = IBSHIFT_NODE_SWITCH; /* with the port's name behind its own */
        end->length -= dname + 1;
    }
    if (ibshift_scan_decimal(port, &end->port) == NULL || end->port > IBSHIFT_PORT_MAX) {
        return ibshift_lines_fail(u->lines, -EINVAL, "the port '%.40s' is not from 0 to %d", port,
                                  IBSHIFT_PORT_MAX);
    }
    if (ibshift_scan_decimal(text[END_LID], &end->lid) == NULL || end->lid > IBSHIFT_LID_MAX) {
        end->lid = 0; /* of a port that is down */
    }
    return 1;
}

static int take_row(struct ufm *u)
{
    struct ibshift_draft_row near, far;
    char rate[20];
    int is_near = read_end(u, 0, &near);
    int is_far = is_near <= 0 ? is_near : read_end(u, END_FIELDS, &far);

    if (is_far < 0) {
        return is_far;
    }
    if (is_near == 0) {
        return fail(u, "a row without a GUID: wants UFM's ports or links");
    }
    if (strstr(u->text[KIND_AT], "Switch") != NULL) {
        near.kind = IBSHIFT_NODE_SWITCH;
    }
    if (is_far == 0 || near.port == 0 || far.port == 0) { /* 0: a switch's own, without a cable */
        return ibshift_draft_add_row(&u->draft, &near);
    }
    if (u->text[KIND_AT][0] == '\0' && (near.length == 0 || far.length == 0)) {
        return fail(u, "this link does not say which ends are switches: export UFM's ports");
    }
    snprintf(rate, sizeof(rate), "%.8s%.8s", u->text[WIDTH_AT], u->text[SPEED_AT]);
    return ibshift_draft_join_rows(&u->draft, &near, &far, ibshift_rate_parse(rate));
}

static int read_all(struct ufm *u)
{
    int rc = next_token(u) == '[' ? 0 : fail(u, "wants an array of rows"), c;

    while (rc == 0 && (c = next_token(u)) != ']') {
        if (c == ',') {
            continue;
        }
        rc = c == '{' ? read_object(u) : fail(u, "the array of rows has no end");
        rc = rc == 0 ? take_row(u) : rc;
    }
    return rc;
}

int ibshift_read_ufm(struct ibshift_lines *lines, struct ibshift_fabric *f,
                     struct ibshift_warnings *warnings)
{
    struct ufm *u = malloc(sizeof(*u));
    int rc;

    (void)warnings;
    if (u == NULL) {
        return ibshift_fail(lines->err, -ENOMEM, "no memory");
    }
    u->draft = (struct ibshift_draft){.lines = lines, .fabric = f};
    u->lines = lines;
    u->pushed = 0;
    rc = ibshift_draft_finish(&u->draft, read_all(u), "port");
    free(u);
    return rc;
}
