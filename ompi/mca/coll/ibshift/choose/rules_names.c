#include "choose/rules_names.h"

const struct ibshift_rules_collective ibshift_rules_collectives[IBSHIFT_RULES_COLLECTIVES] = {
    {"allgather", IBSHIFT_ALLGATHER, false},
    {"allgatherv", IBSHIFT_ALLGATHER, true},
    {"allreduce", IBSHIFT_ALLREDUCE, false},
    {"alltoall", IBSHIFT_ALLTOALL, false},
    {"alltoallv", IBSHIFT_ALLTOALL, true},
    {"alltoallw", IBSHIFT_COLLECTIVES, true}, /* has one way only */
    {"barrier", IBSHIFT_BARRIER, false},
    {"bcast", IBSHIFT_BCAST, false},
    {"exscan", IBSHIFT_EXSCAN, false},
    {"gather", IBSHIFT_GATHER, false},
    {"gatherv", IBSHIFT_GATHER, true},
    {"reduce", IBSHIFT_REDUCE, false},
    {"reduce_scatter", IBSHIFT_REDUCE_SCATTER, true},
    {"reduce_scatter_block", IBSHIFT_REDUCE_SCATTER, false},
    {"scan", IBSHIFT_SCAN, false},
    {"scatter", IBSHIFT_SCATTER, false},
    {"scatterv", IBSHIFT_SCATTER, true},
};

/* In the order of the numbers from 1. */
static const struct ibshift_theirs allgather[] = {{"linear", "gather_bcast", 0},
                                                  {"bruck", "bruck", 1},
                                                  {"recursive_doubling", "recursive_doubling", 0},
                                                  {"ring", "ring", 0},
                                                  {"neighbor", "neighbor_exchange", 0},
                                                  {"two_proc", "ring", 0},
                                                  {"sparbit", "sparbit", 0},
                                                  {"direct-messaging", "modified_ring", 0},
                                                  {NULL, NULL, 0}};
static const struct ibshift_theirs allgatherv[] = {{"default", "gather_bcast", 0},
                                                   {"bruck", "bruck", 1},
                                                   {"ring", "ring", 0},
                                                   {"neighbor", "neighbor_exchange", 0},
                                                   {"two_proc", "ring", 0},
                                                   {"sparbit", "sparbit", 0},
                                                   {NULL, NULL, 0}};
static const struct ibshift_theirs allreduce[] = {{"basic_linear", "linear", 0},
                                                  {"nonoverlapping", "knomial", 1},
                                                  {"recursive_doubling", "recursive_doubling", 0},
                                                  {"ring", "ring", 0},
                                                  {"segmented_ring", "ring", 0},
                                                  {"rabenseifner", "rabenseifner", 0},
                                                  {"allgather_reduce", "linear", 0},
                                                  {NULL, NULL, 0}};
static const struct ibshift_theirs alltoall[] = {
    {"linear", "linear", 0},      {"pairwise", "pairwise", 0}, {"modified_bruck", "bruck", 1},
    {"linear_sync", "linear", 0}, {"two_proc", "pairwise", 0}, {NULL, NULL, 0}};
static const struct ibshift_theirs alltoallv[] = {
    {"basic_linear", "linear", 0}, {"pairwise", "pairwise", 0}, {NULL, NULL, 0}};
static const struct ibshift_theirs barrier[] = {{"linear", "", 0},
                                                {"double_ring", "", 0},
                                                {"recursive_doubling", "dissemination", 1},
                                                {"bruck", "dissemination", 1},
                                                {"two_proc", "dissemination", 1},
                                                {"tree", "knomial", 1},
                                                {NULL, NULL, 0}};
static const struct ibshift_theirs bcast[] = {{"basic_linear", "linear", 0},
                                              {"chain", "chain", 0},
                                              {"pipeline", "chain", 0},
                                              {"split_binary_tree", "", 0},
                                              {"binary_tree", "", 0},
                                              {"binomial", "knomial", 1},
                                              {"knomial", "knomial", 0},
                                              {"scatter_allgather", "scatter_allgather", 0},
                                              {"scatter_allgather_ring", "scatter_allgather", 0},
                                              {NULL, NULL, 0}};
static const struct ibshift_theirs linear_doubling[] = {
    {"linear", "linear", 0}, {"recursive_doubling", "recursive_doubling", 0}, {NULL, NULL, 0}};
static const struct ibshift_theirs gather[] = {{"basic_linear", "linear", 0},
                                               {"binomial", "nway", 1},
                                               {"linear_sync", "linear", 0},
                                               {NULL, NULL, 0}};
static const struct ibshift_theirs scatter[] = {{"basic_linear", "linear", 0},
                                                {"binomial", "nway", 1},
                                                {"linear_nb", "linear", 0},
                                                {NULL, NULL, 0}};
static const struct ibshift_theirs reduce[] = {{"linear", "linear", 0},
                                               {"chain", "chain", 0},
                                               {"pipeline", "chain", 0},
                                               {"binary", "", 0},
                                               {"binomial", "knomial", 1},
                                               {"in-order_binary", "", 0},
                                               {"rabenseifner", "rabenseifner", 0},
                                               {"knomial", "knomial", 0},
                                               {NULL, NULL, 0}};
static const struct ibshift_theirs reduce_scatter[] = {
    {"non-overlapping", "", 0},
    {"recursive_halving", "recursive_halving", 0},
    {"ring", "ring", 0},
    {"butterfly", "recursive_halving", 0},
    {NULL, NULL, 0}};
static const struct ibshift_theirs reduce_scatter_block[] = {
    {"basic_linear", "", 0},
    {"recursive_doubling", "recursive_halving", 0},
    {"recursive_halving", "recursive_halving", 0},
    {"butterfly", "recursive_halving", 0},
    {NULL, NULL, 0}};
static const struct ibshift_theirs nothing[] = {{NULL, NULL, 0}};

const struct ibshift_theirs *const ibshift_rules_algorithms[IBSHIFT_RULES_COLLECTIVES] = {
    allgather,       allgatherv,
    allreduce,       alltoall,
    alltoallv,       nothing,
    barrier,         bcast,
    linear_doubling, gather,
    nothing,         reduce,
    reduce_scatter,  reduce_scatter_block,
    linear_doubling, scatter,
    nothing};
