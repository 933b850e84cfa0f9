"""What the code runs on: arrays, devices, memory, threads, shared results, words for the user."""
