#include "workloads/ops/redistribute.h"

#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// `x` with dimension `dim` times `numerator` / `denominator`, not yet written.
Tensor resized_along(Tape& tape, const std::string& name, const Tensor& x, std::size_t dim,
                     int numerator, int denominator = 1) {
  Sizes sizes = x.sizes();
  sizes[dim] = sizes[dim] * numerator / denominator;
  return tape.make(name, StridedShape(sizes), x.precision);
}

/// The same elements in another order.
Tensor reordered(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor copy = tape.make(name, StridedShape(x.sizes()), x.precision);
  tape.launch(name, pointwise_kernel(copy, 0, KernelKind::copy), {x}, {copy});
  return copy;
}

Tensor gathered(Tape& tape, const std::string& name, const Tensor& x, std::size_t dim, int ranks) {
  const Tensor all = resized_along(tape, name + ".all_gather", x, dim, ranks);
  tape.collective(OpKind::all_gather, name + ".all_gather", GroupKind::tensor, x, all);
  tape.wait();
  return reordered(tape, name + ".chunks", all);
}

Tensor scattered(Tape& tape, const std::string& name, const Tensor& x, int ranks) {
  const Tensor sent = reordered(tape, name + ".chunks", x);
  const Tensor part = resized_along(tape, name + ".reduce_scatter", x, 1, 1, ranks);
  tape.collective(OpKind::reduce_scatter, name + ".reduce_scatter", GroupKind::tensor, sent, part);
  tape.wait();
  return part;
}

void all_reduce(Tape& tape, const std::string& name, const Tensor& x) {
  tape.all_reduce(name + ".all_reduce", x, GroupKind::tensor);
  tape.wait();
}

/// Products of rows of `all`: those that arrive one after the other, then the last chunk.
class ArrivingProducts {
 public:
  ArrivingProducts(const Tensor& all, int ranks)
      : all_(all), rows_(all.elements() / all.shape.last()), chunk_(rows_ / ranks) {}

  void add(Tape& tape, const PartReader& reader) {
    weights_.push_back(tape.parameter(reader.name + ".weight", {reader.out, all_.shape.last()}));
    names_.push_back(reader.name);
    const Sizes sizes{rows_, reader.out};
    results_.push_back(tape.make(reader.name, StridedShape(sizes), all_.precision));
  }
  void multiply(Tape& tape, std::int64_t rows) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto window = [&](const Tensor& x) {
        return tape.alias(x, StridedShape({rows, x.shape.last()}));
      };
      product_to(tape, names_[i], window(all_), transposed(tape, weights_[i]), std::nullopt,
                 window(results_[i]));
    }
  }
  void run(Tape& tape) const {
    multiply(tape, rows_ - chunk_);
    tape.wait();
    multiply(tape, chunk_);
  }
  std::vector<Tensor> results(Tape& tape) const;

 private:
  Tensor all_;
  std::int64_t rows_, chunk_;
  std::vector<std::string> names_;
  std::vector<Tensor> weights_, results_;
};

std::vector<Tensor> ArrivingProducts::results(Tape& tape) const {
  std::vector<Tensor> views;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const Tensor all = all_, weight = weights_[i], out = results_[i];
    const std::string name = names_[i];
    tape.differentiable({all, weight}, out, [=](Tape& t, auto gradients) {
      const Tensor& g = gradients[0];
      const Tensor rows = t.alias(all, StridedShape({g.sizes()[0], all.shape.last()}));
      t.add_gradient(all, product(t, name + ".dgrad", g, weight));
      t.add_gradient(weight, product(t, name + ".wgrad", transposed(t, g), rows));
    });
    views.push_back(view(tape, out, {all.sizes()[0], all.sizes()[1], out.shape.last()}));
  }
  return views;
}

}  // namespace

Tensor whole_sequence(Tape& tape, const std::string& name, const Tensor& x, int ranks) {
  const Tensor all = gathered(tape, name, x, 1, ranks);
  tape.differentiable({x}, all, [=](Tape& t, auto gradients) {
    t.add_gradient(x, scattered(t, name + ".grad", gradients[0], ranks));
  });
  return all;
}

Tensor part_of_sum(Tape& tape, const std::string& name, const Tensor& partial, int ranks) {
  const Tensor part = scattered(tape, name, partial, ranks);
  tape.differentiable({partial}, part, [=](Tape& t, auto gradients) {
    t.add_gradient(partial, gathered(t, name + ".grad", gradients[0], 1, ranks));
  });
  return part;
}

Tensor sum_over_ranks(Tape& tape, const std::string& name, const Tensor& partial) {
  all_reduce(tape, name, partial);
  const Tensor sum = tape.written_over(partial);
  tape.differentiable({partial}, sum,
                      [=](Tape& t, auto gradients) { t.add_gradient(partial, gradients[0]); });
  return sum;
}

Tensor with_summed_gradient(Tape& tape, const std::string& name, const Tensor& x) {
  const Tensor same = tape.alias(x, x.shape);
  tape.differentiable({x}, same, [=](Tape& t, auto gradients) {
    all_reduce(t, name + ".grad", gradients[0]);
    t.add_gradient(x, gradients[0]);
  });
  return same;
}

Tensor whole_rows(Tape& tape, const std::string& name, const Tensor& x, int ranks) {
  const Tensor all = gathered(tape, name, x, x.sizes().size() - 1, ranks);
  tape.differentiable({x}, all, [=](Tape& t, auto gradients) {
    const Tensor own = t.make(name + ".grad", StridedShape(x.sizes()), x.precision);
    const Access part{gradients[0].storage, own.traffic()};
    t.launch_partial(name + ".grad", pointwise_kernel(own, 0, KernelKind::copy), {part},
                     {whole(own)});
    t.add_gradient(x, own);
  });
  return all;
}

std::vector<Tensor> gathered_products(Tape& tape, const std::string& name, const Tensor& x,
                                      const std::vector<PartReader>& readers, int ranks) {
  const Tensor all = resized_along(tape, name + ".all_gather", x, 1, ranks);
  ArrivingProducts products(all, ranks);
  for (const PartReader& reader : readers) products.add(tape, reader);
  tape.collective(OpKind::all_gather, name + ".all_gather", GroupKind::tensor, x, all);
  products.run(tape);
  tape.differentiable({x}, all, [=](Tape& t, auto gradients) {
    t.add_gradient(x, scattered(t, name + ".grad", gradients[0], ranks));
  });
  return products.results(tape);
}

}  // namespace tessera
