/* What is said of a proof, in words and as members of a JSON object. */
#include "route/verify.h"

#include <inttypes.h>

void route_cycle_print(const struct ibshift_fabric *f, const struct route_proof *p, FILE *out)
{
    char name[256];

    fprintf(out, "credit loop: %u channels wait for each other\n", p->cycle_length);
    for (unsigned i = 0; i < p->cycle_length && i < ROUTE_CYCLE_MOST; i++) {
        ibshift_link_name(f, p->cycle[i].link, name, sizeof(name));
        fprintf(out, "  %s, VL %u\n", name, p->cycle[i].vl);
    }
}

static void print_shifts(const struct ibshift_fabric *f, const struct route_proof *p, FILE *out)
{
    char name[256];

    if (p->shift_seed == 0) {
        fprintf(out, "shifts: all %u over %u places: ", p->shifts, p->places);
    } else {
        fprintf(out, "shifts: %u of %u (seed %" PRIu64 "): ", p->shifts, p->places - 1,
                p->shift_seed);
    }
    fprintf(out, "worst link %.2f flows on average, %u at worst\n", p->average, p->worst);
    if (p->worst > 1) {
        ibshift_link_name(f, p->worst_link, name, sizeof(name));
        fprintf(out, "  shift by %u, LID + %u: %u flows on %s\n", p->worst_shift,
                p->worst_lid_offset, p->worst, name);
    }
}

void route_proof_print(const struct ibshift_fabric *f, unsigned vls, const struct route_proof *p,
                       FILE *out)
{
    char name[256];

    fprintf(out, "routes: %" PRIu64 " from hosts to LIDs", p->routes);
    if (p->broken[0] != '\0') {
        fprintf(out,
                "; %" PRIu64 " have no next hop, %" PRIu64 " run in circles, %" PRIu64
                " end at another host\n  %s\n",
                p->lost, p->circles, p->strays, p->broken);
    } else {
        fprintf(out, ", all arrive\n");
    }
    if (p->others != 0) {
        fprintf(out, "routers and aggregation nodes: %" PRIu64 " routes from and to them, ",
                p->others);
        if (p->others_lost == 0) {
            fprintf(out, "all arrive\n");
        } else {
            fprintf(out, "%" PRIu64 " do not arrive, none of them at a switch with hosts\n",
                    p->others_lost);
        }
    }
    if (p->switches_lost != 0 && p->switches_lost < p->to_switches) {
        fprintf(out, "to switches: %" PRIu64 " of %" PRIu64 " routes do not arrive\n",
                p->switches_lost, p->to_switches);
    }
    fprintf(out, "links per route:");
    for (unsigned i = 0; i <= ROUTE_HOPS_MOST; i++) {
        if (p->hops[i] != 0) {
            fprintf(out, " %" PRIu64 " have %u%s", p->hops[i], i,
                    i == ROUTE_HOPS_MOST ? " or more" : "");
        }
    }
    fputc('\n', out);
    if (p->cycle_length != 0) {
        route_cycle_print(f, p, out);
    } else {
        fprintf(out,
                "no credit loop: %" PRIu64 " dependencies between channels, %u VL%s, acyclic\n",
                p->dependencies, vls, vls == 1 ? "" : "s");
    }
    if (p->links_used != 0) {
        ibshift_link_name(f, p->load_link, name, sizeof(name));
        fprintf(out,
                "load: %u links between switches carry %u to %u routes, %.1f on average\n  "
                "the most: %s\n",
                p->links_used, p->load_least, p->load_most, p->load_mean, name);
    }
    if (p->places != 0) {
        print_shifts(f, p, out);
    }
}

void route_proof_json(const struct route_proof *p, struct json *j)
{
    json_value(j, "routes", "%" PRIu64, p->routes);
    json_value(j, "lost", "%" PRIu64, p->lost);
    json_value(j, "circles", "%" PRIu64, p->circles);
    json_value(j, "strays", "%" PRIu64, p->strays);
    json_value(j, "to_switches", "%" PRIu64, p->to_switches);
    json_value(j, "switches_lost", "%" PRIu64, p->switches_lost);
    json_value(j, "others", "%" PRIu64, p->others);
    json_value(j, "others_lost", "%" PRIu64, p->others_lost);
    json_text(j, "broken", p->broken);
    json_open(j, "hops", '{');
    for (unsigned i = 0; i <= ROUTE_HOPS_MOST; i++) {
        char links[16];

        snprintf(links, sizeof(links), "%u", i);
        if (p->hops[i] != 0) {
            json_value(j, links, "%" PRIu64, p->hops[i]);
        }
    }
    json_close(j, '}');
    json_value(j, "dependencies", "%" PRIu64, p->dependencies);
    json_value(j, "cycle", "%u", p->cycle_length);
    json_value(j, "links", "%u", p->links_used);
    json_open(j, "load", '{');
    json_value(j, "least", "%u", p->load_least);
    json_value(j, "mean", "%.3f", p->load_mean);
    json_value(j, "most", "%u", p->load_most);
    json_close(j, '}');
    if (p->places == 0) {
        return;
    }
    json_value(j, "places", "%u", p->places);
    json_value(j, "shifts", "%u", p->shifts);
    json_value(j, "seed", "%" PRIu64, p->shift_seed);
    json_value(j, "average", "%.6f", p->average);
    json_value(j, "worst", "%u", p->worst);
}
