"""Methods of batch placement, one file each."""
