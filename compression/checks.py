"""System checks of compression."""
