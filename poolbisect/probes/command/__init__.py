"""The command probe: any command, run at every commit; docs/command-probe.md explains it."""
