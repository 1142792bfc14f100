"""What several studies share: tables of figures, programs and their inputs, other tools."""
