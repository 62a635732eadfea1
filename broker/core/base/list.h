/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* An intrusive, circular, doubly linked list. A head is a node that belongs to no item; a node that
 * is in no list has next == NULL (so zeroed memory is a node in no list, but not an empty head). */
#ifndef TASKMQ_CORE_LIST_H
#define TASKMQ_CORE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct node {
    struct node *prev;
    struct node *next;
} node_t;

/* The item that a node is a member of. */
#define LIST_ITEM(node, type, member) ((type *) (void *) ((char *) (node) -offsetof (type, member)))

static inline void list_init (node_t *head)
{
    head->prev = head;
    head->next = head;
}

static inline bool list_is_empty (const node_t *head)
{
    return head->next == head;
}

static inline bool node_is_linked (const node_t *node)
{
    return node->next != NULL;
}

static inline void list_insert_before (node_t *place, node_t *node)
{
    node->prev = place->prev;
    node->next = place;
    place->prev->next = node;
    place->prev = node;
}

static inline void list_push_back (node_t *head, node_t *node)
{
    list_insert_before (head, node);
}

static inline void list_push_front (node_t *head, node_t *node)
{
    list_insert_before (head->next, node);
}

/* Moves all of `from` behind the last of head; from is empty afterwards. */
static inline void list_append (node_t *head, node_t *from)
{
    if (list_is_empty (from))
        return;
    from->next->prev = head->prev;
    head->prev->next = from->next;
    from->prev->next = head;
    head->prev = from->prev;
    list_init (from);
}

/* Takes a node out of the list that it is in. */
static inline void list_unlink (node_t *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->prev = NULL;
    node->next = NULL;
}

/* … and does nothing to a node that is in none. */
static inline void list_remove (node_t *node)
{
    if (node->next != NULL)
        list_unlink (node);
}

/* The first node, or NULL when the list is empty. */
static inline node_t *list_first (const node_t *head)
{
    return list_is_empty (head) ? NULL : head->next;
}

static inline node_t *list_pop_front (node_t *head)
{
    node_t *node = list_first (head);
    if (node == NULL)
        return NULL;
    list_unlink (node);
    assert (head->next != node); /* said for the static analyzer */
    return node;
}

static inline node_t *list_pop_back (node_t *head)
{
    if (list_is_empty (head))
        return NULL;
    node_t *node = head->prev;
    list_unlink (node);
    assert (head->prev != node); /* said for the static analyzer */
    return node;
}

#endif
