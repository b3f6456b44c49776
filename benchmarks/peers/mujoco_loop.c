// MuJoCo's smooth dynamics in a plain loop over a batch of states, for ctypes.
//
// Only the stages that a row needs: no contacts, constraints, sensors, actuators.
// Arrays are C-contiguous, one state per row. One mjData for each thread.
#include <mujoco/mujoco.h>
#include <pthread.h>
#include <string.h>

typedef struct Task {
  const mjModel *m;
  mjData *d;
  int begin, end, steps;
  double dt;
  const double *q, *qd, *u;
  double *out;
} Task;

typedef void *(*Part)(void *);

static void position(const Task *t, int i) {
  memcpy(t->d->qpos, t->q + (size_t)i * t->m->nq, t->m->nq * sizeof(double));
  mj_kinematics(t->m, t->d);
  mj_comPos(t->m, t->d);
}

static void velocity(const Task *t, int i) {
  memcpy(t->d->qvel, t->qd + (size_t)i * t->m->nv, t->m->nv * sizeof(double));
  mj_comVel(t->m, t->d);
}

// Accelerations at the position and velocity of the data under the forces tau.
static void accelerate(const Task *t, const double *tau, double *qdd) {
  const int nv = t->m->nv;
  mj_makeM(t->m, t->d);
  mj_factorM(t->m, t->d);
  mj_rne(t->m, t->d, 0, t->d->qfrc_bias);
  for (int k = 0; k < nv; ++k) qdd[k] = tau[k] - t->d->qfrc_bias[k];
  mj_solveM(t->m, t->d, qdd, qdd, 1);
}

static void *inverse_part(void *task) {
  const Task *t = task;
  const size_t nv = t->m->nv;
  for (int i = t->begin; i < t->end; ++i) {
    position(t, i);
    velocity(t, i);
    memcpy(t->d->qacc, t->u + i * nv, nv * sizeof(double));
    mj_rne(t->m, t->d, 1, t->out + i * nv);
  }
  return NULL;
}

static void *mass_part(void *task) {
  const Task *t = task;
  const size_t nv = t->m->nv;
  for (int i = t->begin; i < t->end; ++i) {
    position(t, i);
    mj_makeM(t->m, t->d);
    mj_fullM(t->m, t->d, t->out + i * nv * nv);
  }
  return NULL;
}

static void *forward_part(void *task) {
  const Task *t = task;
  const size_t nv = t->m->nv;
  for (int i = t->begin; i < t->end; ++i) {
    position(t, i);
    velocity(t, i);
    accelerate(t, t->u + i * nv, t->out + i * nv);
  }
  return NULL;
}

static void *rollout_part(void *task) {
  const Task *t = task;
  const size_t nq = t->m->nq, nv = t->m->nv;
  for (int i = t->begin; i < t->end; ++i) {
    memcpy(t->d->qpos, t->q + i * nq, nq * sizeof(double));
    memcpy(t->d->qvel, t->qd + i * nv, nv * sizeof(double));
    for (int k = 0; k < t->steps; ++k) {
      mj_kinematics(t->m, t->d);
      mj_comPos(t->m, t->d);
      mj_comVel(t->m, t->d);
      accelerate(t, t->u + ((size_t)i * t->steps + k) * nv, t->d->qacc);
      for (size_t j = 0; j < nv; ++j) t->d->qvel[j] += t->dt * t->d->qacc[j];
      mj_integratePos(t->m, t->d->qpos, t->d->qvel, t->dt);
    }
    memcpy(t->out + i * nq, t->d->qpos, nq * sizeof(double));
  }
  return NULL;
}

static void run(Part part, Task whole, mjData **data, int threads, int batch) {
  Task tasks[threads];
  pthread_t others[threads];
  for (int t = 0; t < threads; ++t) {
    tasks[t] = whole;
    tasks[t].d = data[t];
    tasks[t].begin = (long)batch * t / threads;
    tasks[t].end = (long)batch * (t + 1) / threads;
    if (t) pthread_create(&others[t], NULL, part, &tasks[t]);
  }
  part(&tasks[0]);
  for (int t = 1; t < threads; ++t) pthread_join(others[t], NULL);
}

void inverse_dynamics(const mjModel *m, mjData **data, int threads, int batch,
                      const double *q, const double *qd, const double *qdd,
                      double *tau) {
  Task task = {.m = m, .q = q, .qd = qd, .u = qdd, .out = tau};
  run(inverse_part, task, data, threads, batch);
}

void mass_matrix(const mjModel *m, mjData **data, int threads, int batch,
                 const double *q, double *M) {
  Task task = {.m = m, .q = q, .out = M};
  run(mass_part, task, data, threads, batch);
}

void forward_dynamics(const mjModel *m, mjData **data, int threads, int batch,
                      const double *q, const double *qd, const double *tau,
                      double *qdd) {
  Task task = {.m = m, .q = q, .qd = qd, .u = tau, .out = qdd};
  run(forward_part, task, data, threads, batch);
}

// Semi-implicit Euler steps; taus [batch, steps, nv], the last q of each state.
void rollout(const mjModel *m, mjData **data, int threads, int batch, int steps,
             double dt, const double *q, const double *qd, const double *taus,
             double *last) {
  Task task = {.m = m, .q = q, .qd = qd, .u = taus, .out = last};
  task.steps = steps;
  task.dt = dt;
  run(rollout_part, task, data, threads, batch);
}
