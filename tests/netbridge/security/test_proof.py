"""Proofs: both ends know the credential, on this link, in this direction, now."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.security.curve import new_pair, public_of
from shmbroker.netbridge.security.proof import Channel, FarEnd, NearEnd
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role

HIDDEN = "correct horse battery"
OLD = "what it was before this"
KEYS = Stretched("apps", HIDDEN)
OLD_KEYS = Stretched("apps", OLD)
OTHER_KEYS = Stretched("other", HIDDEN)
APPS = Credential("apps", "apps", (Role.CLIENT,), (KEYS,))
CHANNEL = Channel(b"n" * 32, b"f" * 32)
ONE, TWO = b"1" * 32, b"2" * 32


def near(credential: Credential = APPS, channel: Channel = CHANNEL) -> NearEnd:
    return NearEnd(credential, credential.keys[0], channel, ONE)


def far(*credentials: Credential, channel: Channel = CHANNEL) -> FarEnd:
    return FarEnd(Credentials(credentials or (APPS,)), channel, TWO)


def shake(one: NearEnd, other: FarEnd, user: str = "apps", role: Role = Role.CLIENT) -> bool:
    """Whether both are content, in the order of the handshake."""
    other.claim(user, role)
    if not other.check(one.answer(other.challenge)):
        with pytest.raises(PermissionError):
            other.answer(one.challenge)
        return False
    return one.check(other.answer(one.challenge))


def test_who_knows_the_secret_is_admitted() -> None:
    assert shake(near(), far())


def test_who_does_not_know_it_is_not() -> None:
    wrong = replace(APPS, keys=(OLD_KEYS,))
    assert not shake(near(wrong), far())
    assert not shake(near(), far(wrong))
    assert not shake(near(), far(), user="nobody")


def test_the_role_is_one_of_the_credential() -> None:
    assert not shake(near(), far(), role=Role.REPLICA)
    assert not shake(near(), far(replace(APPS, roles=(Role.ADMIN, Role.VIEWER))))
    assert shake(near(), far(replace(APPS, roles=(Role.ADMIN, Role.CLIENT))))


def test_a_user_with_the_password_of_another_is_another() -> None:
    assert not shake(near(replace(APPS, keys=(OTHER_KEYS,))), far())


def test_during_a_rotation_both_passwords_are_good() -> None:
    both = replace(APPS, keys=(KEYS, OLD_KEYS))
    old = replace(APPS, keys=(OLD_KEYS,))
    assert shake(near(old), far(both)), "who has only the old one is admitted"
    assert shake(near(APPS), far(both))
    turned = NearEnd(both, OLD_KEYS, CHANNEL, ONE)
    assert shake(turned, far(old)), "who has both is admitted by who has only the old one"
    assert not shake(near(old), far(APPS)), "and not when it is over"


@pytest.mark.parametrize("end", ["near", "far"])
def test_a_proof_does_not_fit_another_connection(end: str) -> None:
    """Who stands in the middle has a key of its own on one side at least."""
    other = replace(CHANNEL, **{end: b"m" * 32})
    assert not shake(near(channel=other), far())
    assert not shake(near(), far(channel=other))


def test_a_proof_does_not_fit_another_challenge_or_direction() -> None:
    one, other = near(), far()
    other.claim("apps", Role.CLIENT)
    assert not other.check(one.answer(b"3" * 32))
    assert other.check(one.answer(TWO))
    assert not one.check(one.answer(ONE)), "reflected"
    assert not one.check(b"")
    assert not one.check(other.answer(ONE)[:-1])
    assert one.check(other.answer(ONE))


def test_the_middle_learns_nothing_that_opens_the_other_side() -> None:
    """It passes all on between two connections, each with a key of its own."""
    victim = near(channel=Channel(b"n" * 32, b"m" * 32))
    broker = far(channel=Channel(b"m" * 32, b"f" * 32))
    broker.claim("apps", Role.CLIENT)
    assert not broker.check(victim.answer(broker.challenge))


def test_who_knows_user_and_password_knows_the_key_of_the_acceptor() -> None:
    assert public_of(Stretched("apps", HIDDEN).listening) == public_of(KEYS.listening)
    different = {public_of(each.listening) for each in (KEYS, OLD_KEYS, OTHER_KEYS)}
    assert len(different) == 3
    assert KEYS.listening != KEYS.proof


def test_keys_are_those_of_curve() -> None:
    public, secret = new_pair()
    assert public_of(secret) == public
    assert len(public) == len(secret) == 32


def test_keys_show_themselves_nowhere() -> None:
    shown = repr((KEYS, APPS, near(), far())) + str(KEYS)
    for hidden in (HIDDEN, KEYS.listening, KEYS.proof, KEYS._seed):
        text = hidden if isinstance(hidden, str) else hidden.hex()
        assert text not in shown
        assert repr(hidden) not in shown
    with pytest.raises(TypeError):
        pickle.dumps(KEYS)
