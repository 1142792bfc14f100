"""What processes recorded, as columns and remarks."""
