#include "net/node/private.h"

#include <stdlib.h>

static void unlink_note(struct ibshift_node_note *note)
{
    struct ibshift_node_list *list = note->list;

    if (list == NULL) {
        return;
    }
    *(note->previous != NULL ? &note->previous->next : &list->first) = note->next;
    *(note->next != NULL ? &note->next->previous : &list->last) = note->previous;
    note->list = NULL;
}

void ibshift_nn_note_move(struct ibshift_node_list *list, struct ibshift_node_note *note)
{
    unlink_note(note);
    note->list = list;
    note->next = NULL;
    note->previous = list->last;
    *(list->last != NULL ? &list->last->next : &list->first) = note;
    list->last = note;
}

struct ibshift_node_note *ibshift_nn_note_new(struct ibshift_net_node *nn,
                                              struct ibshift_node_peer *peer,
                                              enum ibshift_node_note_kind kind,
                                              const struct ibshift_net_key *key)
{
    struct ibshift_node_note *note = nn->free_notes;

    if (note != NULL) {
        nn->free_notes = note->next;
    } else if ((note = malloc(sizeof(*note))) == NULL) {
        return NULL;
    }
    *note = (struct ibshift_node_note){.match = {.peer = peer->number, .key = *key},
                                       .kind = (uint8_t)kind};
    return note;
}

void ibshift_nn_enter(struct ibshift_match_table *table, struct ibshift_node_note *note)
{
    ibshift_match_add(table, &note->match);
    note->is_in_table = true;
}

void ibshift_nn_leave(struct ibshift_match_table *table, struct ibshift_node_note *note)
{
    if (note->is_in_table) {
        ibshift_match_remove(table, &note->match);
        note->is_in_table = false;
    }
}

static struct ibshift_match_table *table_of(struct ibshift_net_node *nn,
                                            const struct ibshift_node_note *note)
{
    return note->kind == IBSHIFT_NODE_RECV || note->kind == IBSHIFT_NODE_HELD ? &nn->rx : &nn->tx;
}

/* Of one that was held. */
void ibshift_nn_drop_buffer(struct ibshift_node_note *note)
{
    if (note->buffer != note->small) {
        free(note->buffer);
    }
}

void ibshift_nn_note_free(struct ibshift_net_node *nn, struct ibshift_node_note *note)
{
    ibshift_nn_leave(table_of(nn, note), note);
    unlink_note(note);
    if (note->kind == IBSHIFT_NODE_HELD) {
        ibshift_nn_drop_buffer(note);
    }
    note->next = nn->free_notes;
    nn->free_notes = note;
}

/* Its event follows with the next poll. */
void ibshift_nn_note_end(struct ibshift_net_node *nn, struct ibshift_node_note *note, int status)
{
    ibshift_nn_leave(table_of(nn, note), note);
    note->status = status;
    ibshift_nn_note_move(&nn->ended, note);
}

void ibshift_nn_notes_free(struct ibshift_net_node *nn)
{
    while (nn->free_notes != NULL) {
        struct ibshift_node_note *note = nn->free_notes;

        nn->free_notes = note->next;
        free(note);
    }
}
