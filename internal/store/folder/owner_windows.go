package folder

// checkOwner leaves it to the system's rights, which know no uid.
func checkOwner(string) error { return nil }
