"""Results of other tools: files that they wrote, read as series of repetitions, and two sides of them as an experiment."""
