"""The protocol with one guard removed, each with a scenario in which the explorer must object.

A snippet is the text of the real kernel and must occur in it exactly once; when a kernel changes so
that it does not, the test says so, and the mutant is to be written anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.explore.translation import Mutation, Translation


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard removed."""

    name: str
    scenario: str
    mutations: tuple[Mutation, ...]

    def translation(self) -> Translation:
        return Translation(self.mutations)


def _one(name: str, scenario: str, kernel: str, old: str, new: str) -> Mutant:
    return Mutant(name, scenario, (Mutation(kernel, old, new),))


MUTANTS: Final = (
    # --- publishing
    Mutant(
        "claim-then-fill",
        "pair",
        (
            Mutation(
                "publish_body",
                "copy(header_write(port, chunk, shape, PLAIN_MARK, origin) + CHUNK_HEADER_BYTES, "
                "body, length)",
                "at = header_write(port, chunk, shape, PLAIN_MARK, origin) + CHUNK_HEADER_BYTES",
            ),
            Mutation(
                "publish_body",
                "    numbered(port, origin)\n",
                "    copy(at, body, length)\n    numbered(port, origin)\n",
            ),
        ),
    ),
    _one(
        "publish-by-store",
        "exchange",
        "place",
        "if compare_exchange(slot_at(port, tail), lap, word_ready(chunk, lap)) == lap:",
        "if exchange(slot_at(port, tail), word_ready(chunk, lap)) == lap:",
    ),
    _one(
        "publish-over-done-without-looking-at-head",
        "cursor",
        "place_further",
        "elif is_recycled(port, tail - slots):",
        "elif True:",
    ),
    _one(
        "publish-over-any-state-of-a-recycled-slot",
        "recycle",
        "place_further",
        "if word_state(seen) == DONE and compare_exchange(slot, seen, ready) == seen:",
        "if exchange(slot, ready) == seen:",
    ),
    _one(
        "tail-by-store",
        "exchange",
        "publish_once",
        "compare_exchange(tail, position, (position + 1) & POSITION_MASK)",
        "store_release(tail, (position + 1) & POSITION_MASK)",
    ),
    # --- numbered producers
    _one(
        "number-not-noted-by-its-producer",
        "successor",
        "numbered",
        "own_sequence_note(port, origin & SEQUENCE_MASK)",
        "pass",
    ),
    _one(
        "number-not-noted-by-who-helps-tail",
        "successor",
        "tail_pass",
        " and sequence_note(port, word, tail):",
        ":",
    ),
    _one(
        "number-noted-of-a-chunk-that-is-reused",
        "successor-reuse",
        "sequence_note",
        "if load_acquire(load(port + PORT_HEADER) + RING_TAIL_AT) != tail:",
        "if False:",
    ),
    # --- origins
    _one(
        "number-not-noted-by-who-pours",
        "pour",
        "pour_once",
        "own_sequence_note(port, last)",
        "pass",
    ),
    _one(
        "number-noted-after-tail-was-moved",
        "pour",
        "pour_once",
        """        own_sequence_note(port, last)
        if pour_tail(port, first, done, position) != OK:
            return DAMAGED
""",
        """        if pour_tail(port, first, done, position) != OK:
            return DAMAGED
        own_sequence_note(port, last)
""",
    ),
    _one(
        "what-is-known-poured-again",
        "pour",
        "pour_once",
        "if sequence <= last:",
        "if False:",
    ),
    _one(
        "owner-of-an-origin-by-store",
        "pour-owned",
        "origin_own",
        "int(compare_exchange(entry + ORIGIN_OWNER_AT, former, owner) == former)",
        "int(exchange(entry + ORIGIN_OWNER_AT, owner) >= 0)",
    ),
    _one(
        "origin-taken-from-the-living",
        "pour-owned",
        "origins_repair",
        "if owner == 0 or (load(alive + ((owner & OWNER_MASK) >> 6) * 8) >> (owner & 63)) & 1:",
        "if owner == 0:",
    ),
    _one(
        "origin-of-the-dead-not-freed",
        "pour",
        "origins_repair",
        "int(compare_exchange(address, owner, 0) == owner)",
        "0",
    ),
    _one(
        "origin-forgotten-without-a-generation",
        "pour-forgotten",
        "number_begins",
        "+ ORIGIN_GENERATION",
        "",
    ),
    _one(
        "number-noted-for-the-next-origin",
        "pour-forgotten",
        "sequence_raise",
        "if (seen ^ last) & ~SEQUENCE_MASK:",
        "if False:",
    ),
    # --- open numbers
    _one(
        "retry-not-noted-by-who-publishes",
        "retry",
        "own_sequence_note",
        "        number_close(port, last & ~SEQUENCE_MASK | producer, sequence)\n",
        "",
    ),
    _one(
        "retry-not-noted-by-who-helps",
        "retry",
        "sequence_note",
        "        number_close(port, last & ~SEQUENCE_MASK | producer, sequence)\n",
        "",
    ),
    _one(
        "highest-number-lowered-by-a-retry",
        "retry",
        "own_sequence_note",
        "if producer >= PRODUCERS and last & SEQUENCE_MASK >= sequence:",
        "if False:",
    ),
    _one(
        "open-number-without-a-generation",
        "retry-helped",
        "number_begins",
        "+ ORIGIN_GENERATION",
        "",
    ),
    _one(
        "generation-read-when-it-is-known-whose-it-is",
        "retry-helped",
        "number_close",
        "return int(compare_exchange(entry + ORIGIN_NUMBER_AT, seen, seen | number) == seen)",
        "return int(fetch_add(entry + ORIGIN_NUMBER_AT, number) >= 0)",
    ),
    _one(
        "open-number-freed-that-is-open",
        "retry",
        "numbers_settle",
        "if closed or load(entry + ORIGIN_MISSED_AT) > last:",
        "if True:",
    ),
    # --- taking and acknowledging
    _one(
        "ticket-for-takers",
        "exchange",
        "plain_find",
        "take = load_acquire(address)",
        "take = fetch_add(address, 1)",
    ),
    _one(
        "take-past-what-is-not-published",
        "recycle",
        "plain_find",
        "if ahead < 0 or (ahead == 0 and state == FREE):",
        "if ahead == 0 and state == FREE:",
    ),
    _one(
        "take-what-is-of-another-lap",
        "overtaken",
        "plain_find",
        "if ahead == 0 and state == READY:",
        "if state == READY:",
    ),
    _one(
        "claim-by-store",
        "exchange",
        "claim",
        "return leased if compare_exchange(slot, word, leased) == word else 0",
        "return leased if exchange(slot, leased) == word else 0",
    ),
    _one(
        "ack-by-store",
        "leases",
        "finish",
        "int(compare_exchange(slot_at(port, position), leased, word_done(leased)) == leased)",
        "store_release(slot_at(port, position), word_done(leased)) + 1",
    ),
    _one(
        "give-back-by-store",
        "leases",
        "put_back",
        "if compare_exchange(slot_at(port, position), leased, ready) != leased:",
        "if exchange(slot_at(port, position), ready) == 0:",
    ),
    _one("give-back-uncounted", "give-back", "word_given_back", "deliveries += 1", "pass"),
    _one(
        "give-back-without-lowering-take",
        "give-back",
        "put_back",
        "lower_hints(port, position, ready)",
        "pass",
    ),
    _one(
        "take-without-epoch",
        "give-back",
        "hint_lower",
        "hint - above + EPOCH_STEP",
        "hint - above",
    ),
    _one(
        "give-back-without-lowering-the-level",
        "levels-returned",
        "lower_hints",
        "lowered += hint_lower(port, level_hint(port, level), position, ready)",
        "pass",
    ),
    _one(
        "level-hint-moved-by-addition",
        "levels-give-back",
        "level_search",
        "compare_exchange(address, hint, hint + 1)",
        "fetch_add(address, 1)",
    ),
    _one(
        "level-passed-where-nothing-is-published",
        "levels",
        "level_search",
        "if ahead < 0 or (ahead == 0 and state == FREE):",
        "if ahead < 0:",
    ),
    _one(
        "repair-does-not-lower-levels",
        "levels-give-back",
        "is_passed_over",
        "if levels == 0:",
        "if True:",
    ),
    _one("take-lowered-only-if-above", "give-back", "hint_lower", "above < 0", "above <= 0"),
    _one(
        "take-lowered-without-looking-again",
        "leases",
        "hint_lower",
        " or load_acquire(slot_at(port, position)) != ready",
        "",
    ),
    _one(
        "lease-stamped-by-store",
        "leases-deep",
        "claim",
        "compare_exchange(slot + SLOT_LEASE_AT, former, lease)",
        "store_release(slot + SLOT_LEASE_AT, lease)",
    ),
    # --- reclaiming
    _one(
        "reclaim-what-is-not-done",
        "exchange",
        "done_run",
        "elif word_state(word) != DONE:",
        "elif word_state(word) == READY:",
    ),
    _one(
        "reclaim-what-is-of-another-lap",
        "exchange",
        "done_run",
        "(word & LAP_MASK) != lap_of(port, position)",
        "False",
    ),
    _one(
        "reclaim-by-store",
        "exchange",
        "reclaim",
        "if compare_exchange(address, head, head + (end - position)) != head:",
        "if exchange(address, head + (end - position)) == 0:",
    ),
    _one(
        "reclaim-past-tail",
        "exchange",
        "reclaim",
        "if tail_load(port) < end and tail_pass(port, end - 1) < end:",
        "if False:",
    ),
    _one(
        "reclaim-past-take",
        "exchange",
        "reclaim",
        "if not take_raise(port, end):",
        "if False:",
    ),
    _one(
        "reclaim-without-epoch-of-take",
        "leases",
        "take_raise",
        "take + behind + EPOCH_STEP",
        "take + behind",
    ),
    _one(
        "free-what-is-published-again",
        "recycle",
        "slots_free",
        "if (word & LAP_MASK) == lap and word_state(word) == DONE:",
        "if True:",
    ),
    _one(
        "free-by-store",
        "recycle",
        "slots_free",
        "compare_exchange(slot, word, (lap + 1 - behind) & LAP_MASK)",
        "store_release(slot, (lap + 1 - behind) & LAP_MASK)",
    ),
    _one("lap-does-not-wrap", "exchange", "slots_free", "(lap + 1 - behind) & LAP_MASK", "lap + 1"),
    # --- setting aside
    _one(
        "aside-and-not-passed",
        "aside",
        "hint_pass",
        "        if at > position:\n            return 1",
        "        return 1",
    ),
    _one(
        "aside-passes-what-others-wait-for",
        "aside-returned",
        "hint_pass",
        "if level < 0 or level_of(port, word, mode_levels(ring_mode(port))) == level:",
        "if False:",
    ),
    _one(
        "aside-passed-by-store",
        "aside-returned",
        "hint_pass",
        "compare_exchange(address, hint, hint + 1)",
        "store_release(address, hint + 1)",
    ),
    _one(
        "aside-brought-back-by-a-repair",
        "aside-repaired",
        "slot_repair",
        " or is_aside(word):",
        ":",
    ),
    _one(
        "aside-of-a-level-not-passed",
        "aside-levels",
        "put_aside",
        "hint_pass(port, level_hint(port, level), position, level)",
        "pass",
    ),
    _one(
        "aside-taken-again-from-a-group",
        "aside-groups",
        "group_look",
        "if is_aside(word):",
        "if False:",
    ),
    # --- gates and cursors
    _one("gates-ignored", "cursor", "reclaim", "limit = gates_floor(port, limit)", "limit = limit"),
    _one("gate-joined-without-epoch", "cursor", "gate_settle", "head + EPOCH_STEP", "head"),
    _one("gate-joined-unseen", "cursor", "gate_take", "gates_raise_high(port, gate + 1)", "pass"),
    _one(
        "gate-of-the-dead-kept",
        "cursor",
        "ring_repair",
        "repaired = gates_repair(port, alive)",
        "repaired = 0",
    ),
    _one(
        "gate-taken-by-store",
        "cursors",
        "gate_take",
        "if compare_exchange(gate_at(port, gate), word, claimed) == word:",
        "if exchange(gate_at(port, gate), claimed) >= 0:",
    ),
    _one(
        "lossy-without-looking-again",
        "lossy",
        "look_and_copy",
        "if code != EMPTY and head_load(port) > position:",
        "if False:",
    ),
    _one(
        "lossy-compares-laps-only",
        "lossy-late",
        "cursor_look",
        "return GONE if head_load(port) > position else EMPTY",
        "return EMPTY",
    ),
    _one(
        "publisher-compares-laps-only",
        "producer-late",
        "place_further",
        "if not is_recycled(port, tail):",
        "if True:",
    ),
    _one(
        "gating-cursor-ahead-of-the-barrier",
        "barrier-seen",
        "cursor_next",
        "if not is_seen(port, load(cursor + CURSOR_GATE), position):",
        "if False:",
    ),
    _one(
        "lossy-cursor-ahead-of-the-barrier",
        "barrier-seen",
        "look_if_seen",
        "if not is_seen(port, load(cursor + CURSOR_GATE), position):",
        "if False:",
    ),
    _one("barrier-ignored", "barrier", "is_visible", "return int(position < visible)", "return 1"),
    _one(
        "taken-while-its-broker-does-not-serve",
        "serves-again",
        "is_deliverable",
        "is_served(port) != 0 and ",
        "",
    ),
    _one("loans-ignored", "loans", "run_is_empty", "load(run + RUN_LOANS_AT) == 0 and ", ""),
    _one(
        "dropped-by-store",
        "drop",
        "drop_oldest",
        "if compare_exchange(slot, word, word_done(word)) == word:",
        "if exchange(slot, word_done(word)) == word:",
    ),
    _one("open-gate-counted", "cursor", "gates_floor", "gate_is_active(word) and ", ""),
    _one(
        "gate-adopted-unsettled",
        "journal-adopted",
        "gate_adopt",
        "return gate_settle(port, gate, gate_life(word), position)",
        "return position",
    ),
    _one("gate-joined-at-a-former-head", "cursor", "gate_settle", "if seen == head:", "if True:"),
    _one(
        "lasting-gate-dropped",
        "journal-adopted",
        "gates_repair",
        "0 if gate_life(word) == GATE_FLEETING else gate_without_owner(word)",
        "0",
    ),
    _one(
        "gate-lasting-before-it-has-its-name",
        "replica-adopted",
        "gate_take",
        "gate_word(port, GATE_FLEETING, 0)",
        "gate_word(port, life, 0)",
    ),
    _one(
        "gate-kept-by-the-dead",
        "replica-adopted",
        "gates_repair",
        "gate_without_owner(word)",
        "word",
    ),
    # --- groups, and the single active consumer
    _one(
        "claimed-without-looking-at-the-bucket-again",
        "single-threads",
        "any_claim",
        "is_admitted(port, leased)",
        "True",
    ),
    _one(
        "bucket-settled-while-others-hold-messages-of-it",
        "single-threads",
        "bucket_admits",
        "        return PENDING\n    if compare_exchange",
        "        pass\n    if compare_exchange",
    ),
    _one(
        "group-taken-past-one-that-is-in-a-stranger's-hand",
        "single-outranked",
        "group_look",
        "if admits == OURS and load(port + PORT_BLOCKED) >> (bucket & BLOCKED_MASK) & 1:",
        "if False:",
    ),
    _one(
        "settled-and-not-looked-from-head",
        "single-rebalanced",
        "group_find",
        "position = group_begin(port) if admits == AGAIN else position + 1",
        "position = position if admits == AGAIN else position + 1",
    ),
    _one(
        "unclaimed-by-store",
        "single-outranked",
        "any_claim",
        "if compare_exchange(slot_at(port, position), leased, ready) == leased:",
        "if exchange(slot_at(port, position), word_given_back(leased)) == leased:",
    ),
    _one(
        "buckets-of-the-dead-kept",
        "single",
        "ring_repair",
        "repaired += groups_repair(port, alive)",
        "pass",
    ),
    _one(
        "freed-without-a-word",
        "groups-returned",
        "groups_free",
        "    if freed:\n        groups_changed(port)\n",
        "",
    ),
    _one(
        "returned-without-a-word",
        "groups-returned",
        "lower_hints",
        "    if mode_buckets(mode):\n        groups_changed(port)\n",
        "",
    ),
    _one(
        "what-is-pending-is-passed",
        "single-stands-down",
        "group_find",
        "pending if pending >= 0 else position",
        "position",
    ),
    # --- the repair
    _one(
        "slots-not-repaired",
        "exchange",
        "ring_repair",
        "repaired += slots_repair(port, tail, alive, now_ms, grace_ms)",
        "pass",
    ),
    _one(
        "repair-does-not-lower-take",
        "give-back",
        "slot_repair",
        "return lower_hints(port, position, word)",
        "return 0",
    ),
    _one(
        "repair-takes-from-the-living",
        "repairer",
        "slot_repair",
        "over = not is_alive(alive, word_owner(word))",
        "over = True",
    ),
    _one(
        "repair-with-the-hint-of-tail", "repairer", "repair", "true_tail(port)", "tail_load(port)"
    ),
    # --- blocks
    _one(
        "block-taken-by-store",
        "arena-shared",
        "block_take",
        "int(compare_exchange(address, word, block_owned_word(port, word)) == word)",
        "store_release(address, block_owned_word(port, word)) + 1",
    ),
    _one(
        "block-taken-before-head-has-passed",
        "heir",
        "seal_is_passed",
        "< load(port + PORT_HEAD_SEEN)",
        "<= load(port + PORT_HEAD_SEEN)",
    ),
    _one(
        "run-used-again-before-head-has-passed",
        "arena",
        "run_is_empty",
        "< load(port + PORT_HEAD_SEEN)",
        "<= load(port + PORT_HEAD_SEEN)",
    ),
    _one(
        "blocks-of-the-living-sealed",
        "repairer",
        "block_repair",
        "if is_alive(alive, block_owner(word)):",
        "if False:",
    ),
    _one(
        "blocks-of-the-dead-freed",
        "repairer",
        "block_repair",
        "if tail > load(port + PORT_HEAD_SEEN):",
        "if False:",
    ),
    _one(
        "sealed-without-a-note",
        "repairer",
        "block_seal",
        "compare_exchange(address + BLOCK_NOTE_AT, note, sealed)",
        "pass",
    ),
    _one(
        "sealed-a-position-short",
        "repairer",
        "block_repair",
        "block_seal(port, block, word, tail - 1, 0)",
        "block_seal(port, block, word, tail - 2, 0)",
    ),
    _one(
        "blocks-freed-by-their-owner-before-head-has-passed",
        "heir",
        "run_release",
        "if last < load(port + PORT_HEAD_SEEN):",
        "if True:",
    ),
    _one("blocks-not-repaired", "pair", "repair", " + blocks_repair(port, tail, alive)", ""),
    # --- batches
    _one(
        "batch-takes-another-lap",
        "batch-give-back",
        "is_next",
        "if lap_and_state != READY << STATE_SHIFT | lap_of(port, position):",
        "if word_state(word) != READY:",
    ),
    # --- transactions
    _one(
        "transaction-placed-without-a-look-at-the-number",
        "transaction",
        "place_once",
        "if last & SEQUENCE_MASK >= origin & SEQUENCE_MASK:",
        "if False:",
    ),
    Mutant(
        "transaction-looks-at-the-number-before-tail-is-true",
        "transaction",
        (
            Mutation(
                "place_once",
                "        # SYNC POINT: sequence (acquire)\n        last = load_acquire(noted)\n",
                "",
            ),
            Mutation(
                "place_once",
                "        tail = true_tail(port)\n",
                "        last = load_acquire(noted)\n        tail = true_tail(port)\n",
            ),
        ),
    ),
    _one(
        "transaction-number-noted-after-tail",
        "transaction",
        "place_once",
        "    sequence_raise(noted, last, origin & SEQUENCE_MASK)\n",
        "",
    ),
    _one(
        "transaction-number-not-in-the-chunk",
        "transaction",
        "chunk_number",
        "store(address + CHUNK_ORIGIN_AT, origin)",
        "pass",
    ),
    _one(
        "transaction-number-noted-before-it-is-placed",
        "transaction",
        "place_once",
        "position = place_here(port, chunk, tail)",
        "sequence_raise(noted, last, origin & SEQUENCE_MASK)\n"
        "        position = place_here(port, chunk, tail)",
    ),
    _one(
        "transaction-finished-by-nobody",
        "transaction",
        "undertaking",
        "    finishing(holder)\n",
        "",
    ),
    _one(
        "transaction-placed-further-on",
        "transaction-helped",
        "place_once",
        "position = place_here(port, chunk, tail)",
        "position = place_further(port, chunk, tail, load(port + PORT_SLOT_MASK) + 1)",
    ),
    _one(
        "transaction-number-goes-back",
        "transaction-helped",
        "sequence_raise",
        "        seen = compare_exchange(target, last, last & ~SEQUENCE_MASK | sequence)",
        "        seen = last + 0 * store_release(target, sequence)",
    ),
    _one(
        "pledge-without-a-look-at-the-word",
        "transaction-late",
        "lease_pledge",
        "if load_acquire(slot) != leased or lease == (LEASE_OVER << LEASE_DEADLINE_SHIFT | tag):",
        "if lease == (LEASE_OVER << LEASE_DEADLINE_SHIFT | tag):",
    ),
    _one(
        "pledged-although-it-is-about-to-be-revoked",
        "transaction-late",
        "lease_pledge",
        "if load_acquire(slot) != leased or lease == (LEASE_OVER << LEASE_DEADLINE_SHIFT | tag):",
        "if load_acquire(slot) != leased:",
    ),
    _one(
        "revoked-without-a-word-in-the-lease",
        "transaction-late",
        "lease_is_over",
        "int(compare_exchange(address, lease, marked) == lease)",
        "1",
    ),
    # --- messages of which one counts
    _one(
        "tail-passes-without-a-verdict",
        "once",
        "tail_pass",
        "once_note(port, word, tail) and ",
        "",
    ),
    _one(
        "verdict-on-a-message-that-tail-has-passed",
        "once-recycled",
        "once_settle",
        "if load_acquire(load(port + PORT_HEADER) + RING_TAIL_AT) != tail:",
        "if False:",
    ),
    _one(
        "verdict-by-store",
        "once-helped",
        "verdict_make",
        "found = compare_exchange(verdict_at(port, tail), seen, made)",
        "found = seen + 0 * exchange(verdict_at(port, tail), made)",
    ),
    _one(
        "verdict-made-anew",
        "once",
        "once_settle",
        "if not is_verdict(verdict, tail):",
        "if True:",
    ),
    _one(
        "verdict-of-another-lap",
        "once-recycled",
        "is_verdict",
        "int(verdict >> 1 == position + 1)",
        "int(verdict > 0)",
    ),
    _one(
        "withdrawn-from-who-has-taken-it",
        "once-recycled",
        "once_settle",
        "if word_state(word) == READY:",
        "if True:",
    ),
    _one(
        "withdrawn-by-store",
        "once-recycled",
        "once_settle",
        "compare_exchange(slot_at(port, tail), word, word_done(word))",
        "store_release(slot_at(port, tail), word_done(word))",
    ),
    _one(
        "taker-does-not-help-tail",
        "once-recycled",
        "verdict_of",
        "tail_pass(port, position)",
        "pass",
    ),
    _one(
        "cursor-shows-duplicates",
        "once-followed",
        "cursor_look",
        "if code == OK and is_duplicate(port, message):",
        "if False:",
    ),
    _one(
        "id-not-noted", "once", "once_settle", "return id_note(port, high, low, tail)", "return 1"
    ),
    _one(
        "id-noted-when-tail-has-moved",
        "once-forgotten",
        "id_note",
        "if load_acquire(load(port + PORT_HEADER) + RING_TAIL_AT) != tail:",
        "if False:",
    ),
    _one(
        "id-noted-by-store",
        "once-forgotten",
        "word_put",
        "found = compare_exchange(address, seen, wanted)",
        "found = exchange(address, wanted)",
    ),
    _one(
        "id-counted-by-nobody-after-a-death",
        "once",
        "id_note",
        "compare_exchange(counter, count, found)",
        "pass",
    ),
    _one(
        "id-counted-by-addition",
        "once",
        "id_note",
        "compare_exchange(counter, count, serial)",
        "fetch_add(counter, 1)",
    ),
    _one(
        "id-noted-twice",
        "once",
        "id_note",
        "found = id_search(port, high, low, last)",
        "found = 0",
    ),
    _one(
        "bucket-leads-to-an-entry-that-is-not-written",
        "once-chained",
        "id_note",
        "    serial = count + 1\n",
        "    serial = count + 1\n    word_put(bucket, last, serial)\n",
    ),
    _one(
        "id-without-the-lap-of-its-serial",
        "once-forgotten",
        "lap_of_serial",
        "(serial // load(port + PORT_IDS_MAX) + 1) & IDS_LAP_MASK",
        "1",
    ),
    _one(
        "id-not-chained-to-the-one-before",
        "once-chained",
        "id_note",
        "if not word_put(entry + IDS_BEFORE_AT, before, last):",
        "if False:",
    ),
    _one(
        "number-noted-before-the-verdict",
        "once-numbered",
        "tail_pass",
        "once_note(port, word, tail) and sequence_note(port, word, tail)",
        "sequence_note(port, word, tail) and once_note(port, word, tail)",
    ),
    _one(
        "transaction-passes-tail-without-a-verdict",
        "once-committed",
        "place_once",
        "    if is_once(load(chunk_address(port, chunk) + CHUNK_MARK_AT)):",
        "    if False:",
    ),
    # --- the newest of each key
    _one(
        "newer-not-looked-for",
        "latest",
        "latest_settle",
        "highest = POSITION_MASK",
        "highest = position",
    ),
    _one(
        "replaced-by-store",
        "latest-taken",
        "replaced",
        "if compare_exchange(slot_at(port, position), word, word_done(word)) != word:",
        "if exchange(slot_at(port, position), word_done(word)) != word:",
    ),
    _one(
        "put-into-a-chain-by-store",
        "latest",
        "chain_insert",
        "if compare_exchange(place, seen, link_to(seen, position)) == seen:",
        "if exchange(place, link_to(seen, position)) == seen:",
    ),
    _one(
        "removed-without-a-mark",
        "latest-behind",
        "chain_find",
        "out = following | LINK_OUT",
        "out = following",
    ),
    _one(
        "put-behind-what-is-out",
        "latest-behind",
        "chain_find",
        "if before >= 0 and",
        "if before >= 0 and False and",
    ),
    _one(
        "given-back-without-a-look-for-newer-ones",
        "latest-returned",
        "put_back",
        "if keeps_latest(port):",
        "if False:",
    ),
    _one(
        "not-looked-at-after-a-death",
        "latest",
        "outliving",
        "    latest_repair(PORT)\n    tell",
        "    tell",
    ),
    _one(
        "found-nothing-and-did-not-look-again",
        "latest-found",
        "latest_find",
        "if load_acquire(replacing) == before:",
        "if True:",
    ),
    _one(
        "what-is-carried-is-new",
        "carry",
        "age_of",
        "if not mark_flags(mark) & CHUNK_CARRIED:",
        "if True:",
    ),
    _one(
        "carried-without-a-word-to-finders",
        "carry-found",
        "carry_on",
        "    fetch_add(load(port + PORT_HEADER) + RING_REPLACING_AT, 1)  # as in latest.replaced\n",
        "",
    ),
    _one(
        "carried-from-somebody's-hand",
        "carry-taken",
        "carry_take",
        "!= 0 or word_state(word) != READY:",
        "!= 0:",
    ),
    # --- stripes of histograms
    _one(
        "stripe-claimed-by-store",
        "stripes",
        "stripe_claim",
        "if compare_exchange(address, 0, owner) == 0:",
        "if exchange(address, owner) >= 0:",
    ),
    _one(
        "stripe-released-without-a-look-at-its-owner",
        "stripes",
        "stripe_release",
        "return int(compare_exchange(address, owner, 0) == owner)",
        "return int(exchange(address, 0) == owner)",
    ),
    _one(
        "everybodys-stripe-counted-by-store",
        "stripes",
        "record",
        "if load(recording + RECORDING_SHARED):",
        "if False:",
    ),
    # --- waking, with store buffers
    _one(
        "sleeper-does-not-look-again",
        "bell",
        "sleeping",
        "            code = take_once(PORT, MESSAGE)\n        if code == OK:",
        "        if code == OK:",
    ),
    _one(
        "bell-armed-by-store",
        "bell-buffered",
        "bell_arm",
        "return bits_set(bell, ASLEEP)",
        "return store_release(bell, ASLEEP)",
    ),
    Mutant(
        "published-by-a-plain-store",
        "bell-buffered",
        (
            Mutation(
                "place",
                "if compare_exchange(slot_at(port, tail), lap, word_ready(chunk, lap)) == lap:",
                "if store_release(slot_at(port, tail), word_ready(chunk, lap)) == 0:",
            ),
            Mutation(
                "publish_once",
                "compare_exchange(tail, position, (position + 1) & POSITION_MASK)",
                "store_release(tail, (position + 1) & POSITION_MASK)",
            ),
        ),
    ),
    _one("bell-not-rung", "bell", "bell_ring", "return exchange(bell, 0)", "return 0"),
    # --- the paging word
    _one(
        "paging-not-noted-after-publishing",
        "paging",
        "publishing",
        "            append(INBOX_MESSAGES, message)\n            paging_note(INBOX)\n",
        "            append(INBOX_MESSAGES, message)\n",
    ),
    _one(
        "paging-ended-by-store",
        "paging",
        "paging_end",
        "int(compare_exchange(ring + RING_PAGING_AT, since, 0) == since)",
        "store_release(ring + RING_PAGING_AT, 0)",
    ),
    _one(
        "paging-noted-by-store",
        "paging",
        "paging_note",
        "fetch_add(ring + RING_PAGING_AT, 1)",
        "exchange(ring + RING_PAGING_AT, 1)",
    ),
    _one(
        "paging-loaded-after-the-look",
        "paging",
        "paging_out",
        "            paging_end(INBOX, since)",
        "            paging_end(INBOX, paging_seen(INBOX))",
    ),
    _one(
        "paging-not-looked-at-by-publishers",
        "paging",
        "publishing",
        "paging_seen(INBOX) == 0 and ask",
        "ask",
    ),
    # --- the mark of a queue that is about to be deleted
    _one("deleted-without-a-mark", "deletion", "deleting", "        deletion_mark(RING)\n", ""),
    _one(
        "deletion-marked-by-store",
        "deletion-buffered",
        "deletion_mark",
        "exchange(ring + RING_DOOMED_AT, 1)",
        "store_release(ring + RING_DOOMED_AT, 1)",
    ),
    _one(
        "confirmed-without-a-look-at-the-mark",
        "deletion",
        "confirming",
        "if deletion_is_marked(RING):",
        "if False:",
    ),
    _one(
        "confirmed-without-waiting-for-the-deleter",
        "deletion",
        "confirming",
        "        lock(who)\n",
        "",
    ),
    _one(
        "deletion-unmarked-too-early",
        "deletion",
        "deleting",
        "        deletion_mark(RING)\n",
        "        deletion_mark(RING)\n        deletion_unmark(RING)\n",
    ),
    # --- the hint of expiry
    _one(
        "expiry-noted-before-publishing",
        "expiry",
        "noting",
        "    compare_exchange(MESSAGES + 8 * which, former, READY)\n",
        "    expiry_note(RING, expiry)\n    compare_exchange(MESSAGES + 8 * which, former, READY)\n"
        "    return 0\n",
    ),
    _one(
        "expiry-noted-by-store",
        "expiry",
        "expiry_note",
        "found = compare_exchange(address, seen, expiry)",
        "found = seen + 0 * store_release(address, expiry)",
    ),
    _one("expiry-noted-of-the-first-only", "expiry", "expiry_note", "seen > expiry", "False"),
    _one("expiry-of-the-first-not-noted", "expiry", "expiry_note", "seen == 0 or ", ""),
    _one(
        "search-begun-by-store",
        "expiry",
        "expiry_begin",
        "if compare_exchange(address, seen, 0) != seen:",
        "if store_release(address, 0) != 0:",
    ),
    _one(
        "search-does-not-note-the-next", "expiry", "searching", "    if following:", "    if False:"
    ),
    _one(
        "expiry-known-after-a-death",
        "expiry",
        "expiry_repair",
        "    return store_release(ring + RING_NEXT_EXPIRY_AT, 1)",
        "    return 0",
    ),
    _one(
        "aside-known-after-a-death",
        "expiry",
        "expiry_repair",
        "    if asides:\n        store_release(ring + RING_ASIDE_AT, 1)\n",
        "",
    ),
    _one(
        "aside-flag-cleared-by-store",
        "expiry-aside",
        "expiry_begin",
        "exchange(ring + RING_ASIDE_AT, 0)",
        "store_release(ring + RING_ASIDE_AT, 0)",
    ),
    _one(
        "aside-flagged-before-it-is-aside",
        "expiry-aside",
        "setting_aside",
        "    compare_exchange(MESSAGES + 8 * which, HELD, ASIDE)\n    aside_note(RING)\n",
        "    aside_note(RING)\n    compare_exchange(MESSAGES + 8 * which, HELD, ASIDE)\n",
    ),
    _one(
        "unplaced-without-a-second-look",
        "transaction-unplaced",
        "transaction_unplaced",
        "    fence_acquire()\n"
        "    if load_acquire(noted) & SEQUENCE_MASK >= origin & SEQUENCE_MASK:\n"
        "        return 0\n",
        "",
    ),
    # --- the commit gate
    _one(
        "counted-before-it-is-decided",
        "commit-gate",
        "commit_decide",
        "    store_release(committed, TRANSACTION_COMMITTED)\n",
        "    number = commit_count(transactions)\n"
        "    store_release(committed, TRANSACTION_COMMITTED)\n    return number\n",
    ),
    _one(
        "commit-not-counted",
        "commit-gate",
        "commit_count",
        "fetch_add(transactions + TRANSACTIONS_BEGUN_AT, 1) + 1",
        "load_acquire(transactions + TRANSACTIONS_BEGUN_AT) + 1",
    ),
    _one(
        "moment-with-somebody-inside",
        "commit-gate",
        "journaling",
        "if begun != whole:",
        "if False:",
    ),
    _one(
        "moment-without-a-second-look",
        "commit-gate",
        "journaling",
        "if commit_begun(TRANSACTIONS) == begun:",
        "if True:",
    ),
    _one(
        "repaired-without-being-counted",
        "commit-gate",
        "finishing",
        "        commit_count(TRANSACTIONS)",
        "        pass",
    ),
    _one(
        "helped-once-and-for-all",
        "commit-gate",
        "commit_is_inside",
        "int(load_acquire(record + TRANSACTION_SERIAL_AT) != helped)",
        "int(helped < 0)",
    ),
    _one(
        "copy-without-a-look-at-its-serial",
        "commit-gate",
        "commit_copy",
        "return serial if load_acquire(record + TRANSACTION_SERIAL_AT) == serial else 0",
        "return serial",
    ),
    _one(
        "copy-of-what-is-not-committed",
        "commit-gate",
        "commit_copy",
        "    if load_acquire(committed) != TRANSACTION_COMMITTED:\n        return 0\n",
        "",
    ),
    _one(
        "copied-before-a-look-at-the-state",
        "commit-gate",
        "commit_copy",
        "    serial = load_acquire(record + TRANSACTION_SERIAL_AT)\n"
        "    if load_acquire(committed) != TRANSACTION_COMMITTED:\n        return 0\n",
        "    if load_acquire(committed) != TRANSACTION_COMMITTED:\n        return 0\n"
        "    serial = load_acquire(record + TRANSACTION_SERIAL_AT)\n",
    ),
    Mutant(
        "serial-after-the-record",
        "commit-gate",
        (
            Mutation(
                "commit_begin",
                "    store_release(record + TRANSACTION_SERIAL_AT, serial)\n",
                "",
            ),
            Mutation(
                "commit_add",
                "    return index",
                "    store_release(record + TRANSACTION_SERIAL_AT, "
                "load(record + TRANSACTION_SERIAL_AT) + 1)\n    return index",
            ),
        ),
    ),
    _one(
        "no-look-for-what-has-no-place",
        "commit-gate",
        "journaling",
        "            unplaced = looking(helped, unplaced)\n",
        "",
    ),
    _one(
        "what-has-no-place-forgotten-with-the-frame",
        "commit-gate",
        "journaling",
        "if written >= unplaced:",
        "if whole != begun:",
    ),
    _one(
        "what-had-no-place-forgotten-before-it-is-written",
        "commit-gate",
        "journaling",
        "if written >= unplaced:",
        "if second >= unplaced:",
    ),
    Mutant(
        "what-had-no-place-forgotten-a-frame-later",
        "commit-gate",
        (
            Mutation(
                "journaling",
                "            if written >= unplaced:\n                unplaced = 0\n",
                "",
            ),
            Mutation(
                "journaling",
                "            whole = begun\n",
                "            whole = begun\n"
                "            if written >= unplaced:\n                unplaced = 0\n",
            ),
        ),
    ),
    Mutant(
        "what-has-no-place-looked-at-after-the-rings",
        "commit-gate",
        (
            Mutation("journaling", "            unplaced = looking(helped, unplaced)\n", ""),
            Mutation(
                "journaling",
                "        second = load_acquire(DONE + 8)\n",
                "        second = load_acquire(DONE + 8)\n"
                "        unplaced = looking(helped, unplaced)\n",
            ),
        ),
    ),
    # --- the bell of a follower
    _one(
        "follower-told-of-nothing",
        "follower",
        "follower_tell",
        "bits_set(place + FOLLOWER_RUNG_AT + (bit // RUNG_BITS) * 8, 1 << (bit % RUNG_BITS))",
        "load_acquire(place + FOLLOWER_RUNG_AT)",
    ),
    Mutant(
        "follower-rung-before-it-is-told",
        "follower",
        (
            Mutation(
                "follower_tell",
                "    bit = row % RUNG_ROWS\n",
                "    rung = bell_ring(place + FOLLOWER_BELL_AT)\n    bit = row % RUNG_ROWS\n",
            ),
            Mutation("follower_tell", "return bell_ring(place + FOLLOWER_BELL_AT)", "return rung"),
        ),
    ),
    _one(
        "follower-asleep-before-it-has-looked",
        "follower",
        "following_both",
        "        if rung == 0:\n            ask(MAY_FOLLOWER_SLEEP)",
        "        ask(MAY_FOLLOWER_SLEEP)",
    ),
    _one(
        "subscriber-wipes-followers-out",
        "follower",
        "bell_arm",
        "return bits_set(bell, ASLEEP)",
        "return exchange(bell, ASLEEP)",
    ),
    _one(
        "rung-set-by-store",
        "follower",
        "follower_tell",
        "bits_set(place + FOLLOWER_RUNG_AT + (bit // RUNG_BITS) * 8, 1 << (bit % RUNG_BITS))",
        "exchange(place + FOLLOWER_RUNG_AT + (bit // RUNG_BITS) * 8, 1 << (bit % RUNG_BITS))",
    ),
    _one(
        "follower-armed-by-store",
        "follower-buffered",
        "bell_follow",
        "return bits_set(bell, 1 << (FOLLOWERS_SHIFT + follower))",
        "return store_release(bell, 1 << (FOLLOWERS_SHIFT + follower))",
    ),
    # --- the barrier and its set
    _one(
        "barrier-joined-without-an-epoch",
        "barrier-set",
        "barrier_join",
        "found = compare_exchange(address, seen, seen + EPOCH_STEP)",
        "found = seen",
    ),
    _one(
        "set-looked-at-before-the-barrier",
        "barrier-set",
        "barrier_raise",
        "        least = barrier_least(port)\n",
        "        least = barrier_least(port)\n        word = load_acquire(address)\n",
    ),
    _one(
        "barrier-by-store",
        "barrier-set",
        "barrier_raise",
        "seen = compare_exchange(address, word, word & ~POSITION_MASK | least)",
        "seen = word + 0 * exchange(address, word & ~POSITION_MASK | least)",
    ),
    _one(
        "barrier-lowered",
        "barrier-set",
        "barrier_raise",
        "if least <= word & POSITION_MASK:",
        "if least == word & POSITION_MASK:",
    ),
    _one("barrier-of-one-gate", "barrier-set", "barrier_least", "if members & 1:", "if gate == 0:"),
    _one(
        "joined-behind-its-own-epoch",
        "barrier-set",
        "barrier_join",
        "    barrier_change(port, gate, 1)\n    seen = load_acquire(address)\n",
        "    seen = load_acquire(address)\n"
        "    seen = compare_exchange(address, seen, seen + EPOCH_STEP) + EPOCH_STEP\n"
        "    barrier_change(port, gate, 1)\n    return seen & POSITION_MASK\n",
    ),
    _one(
        "set-by-store",
        "barrier-set-changed",
        "barrier_change",
        "found = compare_exchange(address, seen, seen ^ bit)",
        "found = seen + 0 * exchange(address, seen ^ bit)",
    ),
    _one(
        "left-and-nobody-told",
        "barrier-set",
        "leaving",
        "    barrier_leave(PORT, gate)\n    moved()\n",
        "    barrier_leave(PORT, gate)\n",
    ),
    _one(
        "adopted-behind-its-gate",
        "barrier-set-adopted",
        "inheriting",
        "    moved()\n    return moving(gate, last)",
        "    return 0",
    ),
    # --- the due word
    _one(
        "note-that-leaves-the-claim",
        "schedule",
        "due_note",
        "if seen == time and seen != 0 and seen <= due:",
        "if seen != 0 and seen <= due:",
    ),
    _one(
        "note-by-store",
        "schedule",
        "due_note",
        "if compare_exchange(word, seen, noted) == seen:",
        "if store_release(word, noted) == 0:",
    ),
    _one(
        "note-of-the-first-lost",
        "schedule",
        "due_note",
        "noted = due if time == 0 else min(time, due)",
        "noted = min(time, due)",
    ),
    _one(
        "note-that-raises",
        "schedule",
        "due_note",
        "noted = due if time == 0 else min(time, due)",
        "noted = due",
    ),
    _one(
        "claim-without-a-mark",
        "schedule",
        "due_claim",
        "claim = until | DUE_CLAIMED",
        "claim = until",
    ),
    _one(
        "settle-by-store",
        "schedule",
        "due_settle",
        "return int(compare_exchange(word, claim, due & ~DUE_CLAIMED) == claim)",
        "return store_release(word, due & ~DUE_CLAIMED) + 1",
    ),
)


def mutant(name: str) -> Mutant:
    for each in MUTANTS:
        if each.name == name:
            return each
    raise ValueError(f"no mutant is called {name!r}")
