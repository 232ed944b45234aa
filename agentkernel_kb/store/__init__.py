"""Stores: bytes at paths. `base` is what a store is; `local` is a folder, `s3` a prefix of a bucket."""
