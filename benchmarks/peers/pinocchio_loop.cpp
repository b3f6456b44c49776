// Pinocchio's algorithms in a plain loop over a batch of states, for ctypes.
//
// Everything is compiled from the headers with the flags of this machine, so that the
// loop does not pay for Python and may use the vector units. Arrays are C-contiguous,
// one state per row. Threads split the batch into equal parts.
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody.hpp>

#include <thread>
#include <vector>

namespace pin = pinocchio;
using Matrix = Eigen::Matrix<double, -1, -1, Eigen::RowMajor>;
using Vec = Eigen::Map<const Eigen::VectorXd>;
using Out = Eigen::Map<Eigen::VectorXd>;
using OutMatrix = Eigen::Map<Matrix>;

// The joints of our robots. With a short list the code is a tenth faster than with
// Pinocchio's own list of all joints, and compiles in half the time. It must have mimic.
template <typename S, int O>
struct Joints {
  typedef S Scalar;
  static constexpr int Options = O;
  typedef boost::variant<
      pin::JointModelRevoluteTpl<S, O, 0>, pin::JointModelRevoluteTpl<S, O, 1>,
      pin::JointModelRevoluteTpl<S, O, 2>, pin::JointModelRevoluteUnalignedTpl<S, O>,
      pin::JointModelFreeFlyerTpl<S, O>,
      boost::recursive_wrapper<pin::JointModelMimicTpl<S, O, ::Joints>>>
      JointModelVariant;
  typedef boost::variant<
      pin::JointDataRevoluteTpl<S, O, 0>, pin::JointDataRevoluteTpl<S, O, 1>,
      pin::JointDataRevoluteTpl<S, O, 2>, pin::JointDataRevoluteUnalignedTpl<S, O>,
      pin::JointDataFreeFlyerTpl<S, O>,
      boost::recursive_wrapper<pin::JointDataMimicTpl<S, O, ::Joints>>>
      JointDataVariant;
};
using Model = pin::ModelTpl<double, 0, Joints>;
using Data = pin::DataTpl<double, 0, Joints>;
using JointModel = pin::JointModelTpl<double, 0, Joints>;

struct Robot {
  Model model;
  std::vector<Data> data;  // one for each thread
};

// Joints about a coordinate axis get Pinocchio's own fast type, as its URDF reader does.
static JointModel joint(bool is_free, const Eigen::Vector3d &axis) {
  if (is_free) return pin::JointModelFreeFlyer();
  if (axis == Eigen::Vector3d::UnitX()) return pin::JointModelRX();
  if (axis == Eigen::Vector3d::UnitY()) return pin::JointModelRY();
  if (axis == Eigen::Vector3d::UnitZ()) return pin::JointModelRZ();
  return pin::JointModelRevoluteUnaligned(axis);
}

// Calls work(data, i) for every state i.
template <typename Work>
static void loop(Robot *robot, int batch, Work work) {
  const int threads = robot->data.size();
  auto part = [&](int t) {
    const int stop = (long)batch * (t + 1) / threads;
    for (int i = (long)batch * t / threads; i < stop; ++i) work(robot->data[t], i);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(part, t);
  part(0);
  for (auto &other : others) other.join();
}

extern "C" {

Robot *load(int n, const int *parents, const int *is_free, const double *R,
            const double *p, const double *axis, const double *mass,
            const double *com, const double *inertia, const double *gravity,
            int threads) {
  auto robot = new Robot;
  Model &model = robot->model;
  std::vector<pin::JointIndex> index;
  for (int i = 0; i < n; ++i) {
    const auto parent = parents[i] < 0 ? 0 : index[parents[i]];
    const pin::SE3 placement(Eigen::Map<const Matrix>(R + 9 * i, 3, 3),
                             Eigen::Map<const Eigen::Vector3d>(p + 3 * i));
    const pin::Inertia body(mass[i], Eigen::Map<const Eigen::Vector3d>(com + 3 * i),
                            Eigen::Matrix3d(Eigen::Map<const Matrix>(
                                inertia + 9 * i, 3, 3)));
    index.push_back(model.addJoint(
        parent, joint(is_free[i], Eigen::Map<const Eigen::Vector3d>(axis + 3 * i)),
        placement, "joint" + std::to_string(i)));
    model.appendBodyToJoint(index.back(), body);
  }
  model.gravity.linear() = Eigen::Map<const Eigen::Vector3d>(gravity);
  for (int t = 0; t < threads; ++t) robot->data.emplace_back(model);
  return robot;
}

void inverse_dynamics(Robot *r, int batch, const double *q, const double *qd,
                      const double *qdd, double *tau) {
  const int nq = r->model.nq, nv = r->model.nv;
  loop(r, batch, [&](Data &data, int i) {
    Out(tau + i * nv, nv) = pin::rnea(r->model, data, Vec(q + i * nq, nq),
                                      Vec(qd + i * nv, nv), Vec(qdd + i * nv, nv));
  });
}

void mass_matrix(Robot *r, int batch, const double *q, double *M) {
  const int nq = r->model.nq, nv = r->model.nv;
  loop(r, batch, [&](Data &data, int i) {
    pin::crba(r->model, data, Vec(q + i * nq, nq), pin::Convention::LOCAL);
    OutMatrix out(M + (long)i * nv * nv, nv, nv);
    out = data.M.selfadjointView<Eigen::Upper>();
  });
}

void forward_dynamics(Robot *r, int batch, const double *q, const double *qd,
                      const double *tau, double *qdd) {
  const int nq = r->model.nq, nv = r->model.nv;
  loop(r, batch, [&](Data &data, int i) {
    Out(qdd + i * nv, nv) =
        pin::aba(r->model, data, Vec(q + i * nq, nq), Vec(qd + i * nv, nv),
                 Vec(tau + i * nv, nv), pin::Convention::WORLD);
  });
}

// The derivatives by q, qd and tau, one after the other.
void jacobian(Robot *r, int batch, const double *q, const double *qd,
              const double *tau, double *J) {
  const int nq = r->model.nq, nv = r->model.nv;
  loop(r, batch, [&](Data &data, int i) {
    pin::computeABADerivatives(r->model, data, Vec(q + i * nq, nq),
                               Vec(qd + i * nv, nv), Vec(tau + i * nv, nv));
    double *out = J + 3L * i * nv * nv;
    OutMatrix(out, nv, nv) = data.ddq_dq;
    OutMatrix(out + nv * nv, nv, nv) = data.ddq_dv;
    data.Minv.triangularView<Eigen::StrictlyLower>() =
        data.Minv.transpose().triangularView<Eigen::StrictlyLower>();
    OutMatrix(out + 2 * nv * nv, nv, nv) = data.Minv;
  });
}

// Semi-implicit Euler steps; taus [batch, steps, nv], the last q of each state.
void rollout(Robot *r, int batch, int steps, double dt, const double *q,
             const double *qd, const double *taus, double *last) {
  const int nq = r->model.nq, nv = r->model.nv;
  loop(r, batch, [&](Data &data, int i) {
    Eigen::VectorXd x = Vec(q + i * nq, nq), v = Vec(qd + i * nv, nv), next(nq);
    for (int k = 0; k < steps; ++k) {
      const Vec tau(taus + ((long)i * steps + k) * nv, nv);
      v += dt * pin::aba(r->model, data, x, v, tau, pin::Convention::WORLD);
      pin::integrate(r->model, x, dt * v, next);
      x = next;
    }
    Out(last + i * nq, nq) = x;
  });
}
}
