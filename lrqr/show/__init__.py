"""A result as text, as figures and as one self-contained HTML file."""
