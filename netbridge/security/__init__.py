"""Who may be at the other end of a link: keys, credentials, proofs and roles.

`stretched.Stretched` makes the keys of a credential from its user and password, `proof` is how both
ends show that they know it, `credential.Credentials` says who is admitted, `key_file` keeps key
pairs and the keys of others. Nothing here shows a secret: not its repr, no error, no log.
"""
