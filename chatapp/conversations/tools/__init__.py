"""Every query and every write about tools: servers, definitions, approvals."""
