"""Hold the stack's own kernels: each with an fp32 reference, a torch twin that rounds as it does, and Triton code.

Triton is imported only where a tensor lies on a GPU; everywhere else the twin runs.
"""
