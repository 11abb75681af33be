#ifndef TEST_UNIT_NODE_NETS_H
#define TEST_UNIT_NODE_NETS_H

/* Three endpoints of a node's net in this process, and messages between them. */
#include "net/node/private.h"
#include "unit.h"

enum { NETS = 3, COMM = 7 };

extern struct ibshift_net *nets[NETS];
extern struct ibshift_node_card cards[NETS];
extern char folder[64];

/* One message between two of the nets. */
struct message {
    uint32_t from, to;
    struct ibshift_net_key key;
    size_t length;
    uint8_t *out, *in;
    bool is_sent, is_received; /* posted */
    bool is_busy;              /* its receiver */
    bool is_attended;          /* by both */
    int send_status, recv_status;
};

enum { WAITING = 1 };

int card_of(void *context, uint32_t peer, struct ibshift_node_card *card);
void open_net(uint32_t i, size_t memory, bool may_copy);
void open_all(size_t memory, bool may_copy);
void close_all(void);
void nets_make(struct message *m, uint32_t from, uint32_t to, uint32_t tag, size_t length);
void nets_take(uint32_t net);
void nets_take_all(int rounds);
int nets_post(struct message *m, bool is_send);
void assert_arrived(const struct message *m);
bool nets_tried(const struct message *m);
/* Of nets 0 and 1: the other one, as this one sees it. */
struct ibshift_node_peer *peer_of(uint32_t net);
int make_folder(void **state);
int remove_folder(void **state);
int open_usual(void **state);
int close_usual(void **state);

/* With nets of 1 MiB that the kernel copies for. */
#define NETS_TEST(name) cmocka_unit_test_setup_teardown(name, open_usual, close_usual)

#endif
