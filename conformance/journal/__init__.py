"""What outlives a run: the program that was running, failures that are kept, their replay."""
