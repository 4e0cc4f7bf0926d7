package main

import "github.com/spf13/cobra"

// storeCommand is the family of commands about the store as a whole.
func (p *program) storeCommand() *cobra.Command {
	return group("store", "Make, describe, adopt, copy, back up and restore a store",
		p.storeCreateCommand(), p.storeDescribeCommand(), p.storeDropCommand(), p.storeAdoptCommand(),
		p.storeCopyCommand(), p.storeBackupCommand(), p.storeRestoreCommand())
}
