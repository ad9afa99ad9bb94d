"""What is promised of links and remote programs, row by row, and the tests that show it.

`ROWS` is the list of promises; `SHOWN` has the tests of each, below tests/; `OPEN` says of what is
not built yet why.  tests/structure/test_rows.py looks that each row is in one of them.
"""

from __future__ import annotations

from typing import Final

REFUSALS: Final = (
    "credentials", "passive", "vhost", "self", "duplicate-node", "stale", "version", "busy",
)  # fmt: skip
EDGES: Final = (
    "a remote that stops in good order",
    "a remote that crashes",
    "a handshake that breaks off half way",
    "a passive broker runs no links",
    "partition",
)
ONCE: Final = (
    "marks, and histories",
    "done when confirmed, resumed at the mark",
    "a takeover knows what was appended",
    "ids of users pass through",
    "a mark behind what was confirmed is a line",
    "an origin is free after a good end",
    "what is rejected is set aside at its source",
    "an origin that was forgotten",
    "a target that starts late",
    "a message that expires while it waits",
    "the far end crashes",
    "the source crashes with a batch in flight",
)
OPTIONS: Final = (
    "failover-mode", "reconnect-deadline", "call-timeout", "confirmation-window", "session-ttl",
    "load-balancing", "use-topology-for-load-balancing", "discovery-initial-wait",
    "prefer-shared-memory",
)  # fmt: skip
AT_A_LOSS: Final = (
    "publish not yet handed over",
    "publish sent, not confirmed",
    "ack in flight",
    "received, not acked",
    "transaction with work",
    "transaction without work",
    "commit in flight",
    "blocked for credit",
    "opening a session",
    "browse",
    "request without reply",
    "non-durable message",
)
KINDS: Final = ("lost", "refused", "moved", "closed")
MODES: Final = ("automatic", "given up")
OTHERS: Final = (
    "events of a recovery",
    "its own broker first",
    "no member of a lower epoch",
    "the next member while one is passive",
    "reconnect under the same producers",
    "topology",
    "programs in shared memory are told Moved",
    "rebalance-cluster-clients",
)

ROWS: Final = (
    *(f"refusal: {each}" for each in REFUSALS),
    *(f"edge: {each}" for each in EDGES),
    *(f"once: {each}" for each in ONCE),
    *(f"option: {each}" for each in OPTIONS),
    *(f"loss, {mode}: {each}" for each in AT_A_LOSS for mode in MODES),
    *(f"kind of loss: {each}" for each in KINDS),
    *(f"program: {each}" for each in OTHERS),
)

HANDSHAKE: Final = "netbridge/link/test_handshake.py::test_"
FLOW: Final = "netbridge/link/test_flow.py::test_"
LINK: Final = "netbridge/carrier/test_link.py::test_"
OWNED: Final = "netbridge/broker/test_owned.py::test_"
PASSIVE: Final = "netbridge/broker/test_passive.py::test_"
RECOVERY: Final = "netbridge/client/test_recovery.py::test_"
KILLED: Final = "netbridge/serving/test_killed.py::test_"
SESSION: Final = "netbridge/remote/test_session.py::test_"
FATE: Final = "netbridge/remote/test_fate.py::test_"
SINK: Final = "ipc/sink/test_sink"
NEAR: Final = "netbridge/client/test_near.py::test_"

SHOWN: Final[dict[str, tuple[str, ...]]] = {
    "refusal: credentials": (
        HANDSHAKE + "refusal_credentials", LINK + "another_password_is_refused",
        OWNED + "a_reload_of_one_end_only_is_refused_by_the_other",
    ),
    "refusal: passive": (
        HANDSHAKE + "refusal_passive", PASSIVE + "it_names_the_live",
        PASSIVE + "who_waits_is_told_when_the_backup_serves",
    ),
    "refusal: vhost": (HANDSHAKE + "refusal_vhost",),
    "refusal: self": (HANDSHAKE + "refusal_self",),
    "refusal: duplicate-node": (HANDSHAKE + "refusal_duplicate_node",),
    "refusal: stale": (HANDSHAKE + "refusal_stale",),
    "refusal: version": (HANDSHAKE + "refusal_version",),
    "refusal: busy": (HANDSHAKE + "refusal_busy",),
    "edge: a remote that stops in good order": (
        LINK + "a_graceful_stop_confirms_what_is_on_its_way",
        PASSIVE + "a_program_that_decides_itself_is_told_how_it_was_lost",
    ),
    "edge: a remote that crashes": (
        LINK + "a_closed_socket_is_told_at_both_ends", LINK + "silence_is_told",
    ),
    "edge: a handshake that breaks off half way": (
        HANDSHAKE + "a_handshake_that_breaks_off_half_way",
        "netbridge/broker/test_strangers.py::test_who_says_half_a_handshake_or_garbage_is_closed",
    ),
    "edge: a passive broker runs no links": (
        OWNED + "a_failover_begins_the_same_links_at_the_backup",
    ),
    "edge: partition": (
        LINK + "silence_is_told",
        "crash/test_link.py::test_each_message_is_there_once_and_in_order",
    ),
    "once: marks, and histories": (
        LINK + "a_stream_arrives_once_and_in_order",
        LINK + "through_an_exchange_each_queue_has_its_own_once",
        FLOW + "another_history_is_another_origin",
    ),
    "once: done when confirmed, resumed at the mark": (
        LINK + "durable_to_durable_waits_for_the_disk_there",
        LINK + "an_exchange_confirms_when_its_durable_queues_have_it_on_disk",
        FLOW + "the_source_reads_on_at_the_mark_of_the_target",
    ),
    "once: a takeover knows what was appended": (
        SINK + "_durable.py::test_the_broker_and_then_the_host_die",
        OWNED + "a_failover_begins_the_same_links_at_the_backup",
    ),
    "once: ids of users pass through": (SINK + ".py::test_a_message_id_is_not_compared",),
    "once: a mark behind what was confirmed is a line": (
        FLOW + "a_mark_behind_what_was_confirmed_is_an_error_line_with_the_count",
    ),
    "once: an origin is free after a good end": (
        LINK + "a_graceful_stop_confirms_what_is_on_its_way",
    ),
    "once: what is rejected is set aside at its source": (
        LINK + "what_the_target_refuses_goes_to_the_dead_letters_of_the_source",
        LINK + "what_one_queue_behind_an_exchange_refuses_is_a_dead_letter",
    ),
    "once: an origin that was forgotten": (
        FLOW + "an_origin_that_was_forgotten_is_a_line_and_flags_what_is_in_doubt",
    ),
    "once: a target that starts late": (OWNED + "a_queue_that_is_not_there_yet",),
    "once: a message that expires while it waits": (
        LINK + "a_message_that_expires_while_it_waits_never_travels",
        SINK + ".py::test_what_is_left_of_a_time_to_live_counts_on",
    ),
    "once: the far end crashes": (
        "crash/test_link.py::test_each_message_is_there_once_and_in_order",
    ),
    "once: the source crashes with a batch in flight": (
        "crash/test_link.py::test_each_message_is_there_once_and_in_order",
    ),
    "option: failover-mode": (RECOVERY + "a_program_that_decides_itself_is_told_and_retries",),
    "option: reconnect-deadline": (RECOVERY + "after_the_deadline_every_call_ends",),
    "option: call-timeout": (SESSION + "a_call_that_was_not_sent_and_is_late_has_failed",),
    "option: confirmation-window": (
        SESSION + "the_window_bounds_what_is_unanswered_and_lets_acks_pass",
        SESSION + "without_a_window_nothing_is_resumed",
    ),
    "option: session-ttl": (SESSION + "beyond_the_ttl_the_session_is_made_again",),
    "option: load-balancing": (
        "netbridge/client/test_cluster.py::test_a_policy_chooses_for_each_session",
    ),
    "option: use-topology-for-load-balancing": (
        "netbridge/clustered/test_programs.py"
        "::test_sessions_spread_over_nodes_that_the_list_does_not_name",
    ),
    "loss, automatic: publish not yet handed over": (
        FATE + "publish_not_handed_over_automatic_is_sent_once",
    ),
    "loss, given up: publish not yet handed over": (
        FATE + "publish_not_handed_over_after_the_deadline_failed",
        FATE + "publish_not_handed_over_application_failed",
    ),
    "loss, automatic: publish sent, not confirmed": (
        FATE + "publish_sent_automatic_is_sent_again_with_its_number",
        KILLED + "publishes_of_a_program_that_fails_over_are_there_once_and_in_order",
        PASSIVE + "a_program_goes_on_at_the_backup",
    ),
    "loss, given up: publish sent, not confirmed": (
        FATE + "publish_sent_and_given_up_is_unknown_with_a_token",
        KILLED + "calls_of_a_program_that_decides_itself_end_as_they_say",
        RECOVERY + "a_program_that_decides_itself_is_told_and_retries",
    ),
    "loss, automatic: ack in flight": (
        FATE + "ack_in_flight_automatic_is_repeated",
        FATE + "ack_that_was_not_sent_automatic_is_revoked",
    ),
    "loss, given up: ack in flight": (FATE + "ack_in_flight_given_up_is_unknown",),
    "loss, automatic: received, not acked": (
        FATE + "received_not_acked_the_old_ack_is_revoked",
        KILLED + "what_was_acknowledged_does_not_come_again_and_the_rest_does",
    ),
    "loss, given up: received, not acked": (FATE + "received_not_acked_the_old_ack_is_revoked",),
    "loss, automatic: transaction with work": (
        FATE + "transaction_with_work_reattached_goes_on",
        RECOVERY + "a_transaction_of_a_session_that_is_gone_was_rolled_back",
    ),
    "loss, given up: transaction with work": (FATE + "transaction_with_work_given_up_failed",),
    "loss, automatic: transaction without work": (FATE + "transaction_without_work_commits",),
    "loss, given up: transaction without work": (FATE + "transaction_without_work_commits",),
    "loss, automatic: commit in flight": (
        FATE + "commit_in_flight_automatic_is_asked_again",
        KILLED + "a_commit_that_is_asked_for_again_is_told_by_its_mark",
    ),
    "loss, given up: commit in flight": (
        FATE + "commit_in_flight_given_up_is_unknown",
        FATE + "commit_that_is_unknown_is_asked_for_by_its_token",
    ),
    "loss, automatic: blocked for credit": (FATE + "blocked_for_credit_automatic_goes_on",),
    "loss, given up: blocked for credit": (FATE + "blocked_for_credit_given_up_failed",),
    "loss, automatic: opening a session": (FATE + "opening_a_session_automatic_goes_on",),
    "loss, given up: opening a session": (FATE + "opening_a_session_given_up_failed",),
    "loss, automatic: browse": (FATE + "browse_automatic_starts_again",),
    "loss, given up: browse": (FATE + "browse_given_up_failed",),
    "loss, automatic: request without reply": (
        FATE + "request_without_reply_automatic_is_unknown_and_not_sent_again",
    ),
    "loss, given up: request without reply": (
        FATE + "request_without_reply_given_up_is_unknown",
    ),
    "loss, automatic: non-durable message": (
        RECOVERY + "a_broker_that_is_killed_and_comes_again_loses_nothing",
    ),
    "loss, given up: non-durable message": (
        RECOVERY + "a_program_that_decides_itself_is_told_and_retries",
    ),
    "kind of loss: lost": (PASSIVE + "a_program_that_decides_itself_is_told_how_it_was_lost",),
    "kind of loss: refused": (PASSIVE + "a_program_that_decides_itself_is_told_how_it_was_lost",),
    "kind of loss: moved": (SESSION + "a_broker_that_wants_it_elsewhere_says_where",),
    "kind of loss: closed": (PASSIVE + "a_program_that_decides_itself_is_told_how_it_was_lost",),
    "program: events of a recovery": (
        SESSION + "events_of_a_recovery_that_is_lost_again",
        PASSIVE + "a_program_goes_on_at_the_backup",
    ),
    "program: its own broker first": (
        "netbridge/plan/test_plan.py::test_a_loss_may_say_whom_to_try_first",
    ),
    "program: no member of a lower epoch": (HANDSHAKE + "a_far_end_that_is_stale_is_not_taken",),
    "program: the next member while one is passive": (
        PASSIVE + "a_passive_broker_says_so_and_the_next_member_is_taken",
    ),
    "program: reconnect under the same producers": (
        RECOVERY + "another_session_at_another_member_retries_what_was_unknown",
        SESSION + "tokens_are_retried_in_any_order",
    ),
    "program: topology": (
        PASSIVE + "a_passive_broker_says_so_and_the_next_member_is_taken",
        PASSIVE + "a_program_is_told_of_a_backup_that_its_list_does_not_have",
    ),
    "program: rebalance-cluster-clients": (
        "netbridge/remote/test_moving.py::test_what_is_in_hand_is_dealt_with_first_and_no_more_is_asked_for",
        "netbridge/clustered/test_rebalancing.py"
        "::test_nothing_is_lost_or_twice_while_programs_that_work_go",
    ),
    "option: discovery-initial-wait": (
        "netbridge/discovered/test_programs.py::test_nobody_in_time",
    ),
    "option: prefer-shared-memory": (
        NEAR + "what_is_not_local_is_there_in_shared_memory",
        NEAR + "who_does_not_prefer_it_has_a_link",
        NEAR + "a_program_moves_to_a_link_and_back_to_shared_memory",
    ),
    "program: programs in shared memory are told Moved": (
        "ipc/vhost/test_moving.py::test_every_call_says_moved_and_where",
        "ipc/vhost/test_moving.py::test_whoever_waits_is_told",
    ),
}  # fmt: skip

OPEN: Final[dict[str, str]] = {}
