#include "wire/wire_heap.h"

static void set(struct wire_net *net, uint32_t place, uint32_t id)
{
    net->heap[place] = id;
    net->messages[id].heap = place;
}

static bool is_before(const struct wire_net *net, uint32_t a, uint32_t b)
{
    return net->messages[a].when < net->messages[b].when;
}

static uint32_t rise(struct wire_net *net, uint32_t place, uint32_t id)
{
    while (place > 0 && is_before(net, id, net->heap[(place - 1) / 2])) {
        set(net, place, net->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    return place;
}

static uint32_t sink(struct wire_net *net, uint32_t place, uint32_t id)
{
    uint32_t events = net->clock->events, child;
    while ((child = 2 * place + 1) < events) {
        if (child + 1 < events && is_before(net, net->heap[child + 1], net->heap[child])) {
            child++;
        }
        if (!is_before(net, net->heap[child], id)) {
            break;
        }
        set(net, place, net->heap[child]);
        place = child;
    }
    return place;
}

void wire_heap_put(struct wire_net *net, uint32_t id)
{
    uint32_t place = net->messages[id].heap;
    if (place == WIRE_NONE) {
        place = net->clock->events++;
    }
    set(net, sink(net, rise(net, place, id), id), id);
}

void wire_heap_drop(struct wire_net *net, uint32_t id)
{
    uint32_t place = net->messages[id].heap;
    uint32_t last = net->heap[--net->clock->events];
    net->messages[id].heap = WIRE_NONE;
    if (last != id) {
        net->messages[last].heap = place;
        set(net, sink(net, rise(net, place, last), last), last);
    }
}
