"""What people do with connections to model servers, and which models are theirs."""
