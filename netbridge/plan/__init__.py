"""Addresses: the uri of a broker or of a list of brokers, and the plan that is made of it.

`text.parse` reads a uri, `plans.plans_of` makes plans of it, and a plan (`plan.Plan`) says which
member is tried next, and when.  A plan decides; it opens nothing, and it has neither clock nor
randomness of its own.
"""
