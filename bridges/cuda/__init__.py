"""What NVIDIA's compiler makes of generated CUDA text; needs the compiler, but no device."""
