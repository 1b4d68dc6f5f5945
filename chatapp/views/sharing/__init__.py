"""HTTP for shared links: a person's own, and what anybody reads by one."""
