"""The sharding controller: gives every scheduler nodes of its own by writing NodeShards (spec 06 11)."""
