"""Conjugate gradients on HPCG's matrix (a 27-point stencil with 26 on the diagonal), without its preconditioner."""

import sys

import numpy as np
from progress import report
from scipy.sparse import csr_matrix

side = int(sys.argv[1]) if len(sys.argv) > 1 else 72
iterations = int(sys.argv[2]) if len(sys.argv) > 2 else 100
n = side**3
indices, values, starts = np.empty(27 * n, np.int32), np.empty(27 * n), np.zeros(n + 1, np.int64)
steps = np.array([(z, y, x) for z in (-1, 0, 1) for y in (-1, 0, 1) for x in (-1, 0, 1)])
filled = 0
for z in range(side):  # plane by plane, so that building needs little more than the matrix
    y, x = np.divmod(np.arange(side * side), side)
    near = np.stack([np.full_like(x, z), y, x], axis=1)[:, None, :] + steps
    inside = ((near >= 0) & (near < side)).all(axis=2)
    column = (near[..., 0] * side + near[..., 1]) * side + near[..., 2]
    count = int(inside.sum())
    indices[filled : filled + count] = column[inside]
    values[filled : filled + count] = np.where((steps == 0).all(axis=1), 26.0, -1.0)[None, :].repeat(len(x), 0)[inside]
    row = z * side * side
    starts[row + 1 : row + side * side + 1] = filled + np.cumsum(inside.sum(axis=1))
    filled += count
matrix = csr_matrix((values[:filled], indices[:filled], starts.astype(np.int32)), shape=(n, n))
wanted, solution = np.ones(n), np.zeros(n)
rest = wanted - matrix @ solution
along, square = rest.copy(), float(rest @ rest)
for iteration in range(iterations):
    image = matrix @ along
    step = square / float(along @ image)
    solution += step * along
    rest -= step * image
    before, square = square, float(rest @ rest)
    along *= square / before
    along += rest
    report(iteration + 1)
print(f"{n} unknowns, residual {square**0.5:.3g} after {iterations} iterations")
