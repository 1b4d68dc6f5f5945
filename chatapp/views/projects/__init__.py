"""The pages and commands of projects."""
