"""What the library knows about tensor2tensor's own names."""
