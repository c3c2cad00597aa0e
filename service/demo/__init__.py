"""A demonstration: a newswire that is made up, readers that are simulated, and a service that learns from them."""
