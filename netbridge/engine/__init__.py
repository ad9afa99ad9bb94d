"""Lock managers: engines that people run already, and that hold the epoch of a node.

To a member an engine is its only voter.  `judge.Judge` decides by the rules of
`election.voter.Voter`; what it decides is one conditional write, of `zookeeper.ZooKeeper` or
`sql.Sql`.  `voters.EngineVoters` carries it out.  Without effects: `judge.py`, `engine.py`,
`option.py`.
"""
