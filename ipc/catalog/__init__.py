"""The catalog of a vhost, as readers see it; and its entries as records of the journal."""
