"""Reports of trends: clusters of places with their growth, in one revision and between two; as text, Markdown, CSV, JSON and a page."""
