"""What is measured, and the agents it is measured on."""
