"""Witnesses: processes without messages that grant epochs and keep leases.

`election.voter.Voter` decides; `witness.Witness` carries it out over the links of a listener, and
`state.State` has its ledgers on disk.  `voters.Witnesses` is what a member has of its witnesses.
"""
