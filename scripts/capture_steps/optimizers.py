# Optimizers under Tidemark's names, as people make them from PyTorch and other packages.
import torch

FORMS = {"for-loop": dict(foreach=False), "foreach": dict(foreach=True), "fused": dict(fused=True)}
OF_TORCH = {"sgd": ("SGD", {}), "sgd-momentum": ("SGD", dict(momentum=0.9)),
            "adagrad": ("Adagrad", {}), "rmsprop": ("RMSprop", {}), "adamw": ("AdamW", {}),
            "adafactor": ("Adafactor", {})}
OF_BITSANDBYTES = {"adamw-32bit": "AdamW", "adamw-8bit": "AdamW8bit", "lion-32bit": "Lion",
                   "lion-8bit": "Lion8bit"}


class Muon(torch.optim.Optimizer):
    """What torch.optim.Muon of PyTorch 2.9 asks of the allocator, operator by operator."""

    def __init__(self, parameters):
        super().__init__(parameters, dict(lr=1e-3))

    @staticmethod
    def orthogonalized(gradient):
        wide = gradient.bfloat16()
        is_tall = gradient.size(0) > gradient.size(1)
        wide = wide.T if is_tall else wide
        wide.div_(wide.norm().clamp(min=1e-7))
        for _ in range(5):
            square = wide @ wide.T
            other = torch.addmm(square, square, square, beta=-4.775, alpha=2.0315)
            wide = torch.addmm(wide, other, wide, beta=3.4445)
        return wide.T if is_tall else wide

    @torch.no_grad()
    def step(self):
        for parameter in self.param_groups[0]["params"]:
            momentum = self.state[parameter].setdefault("momentum", None)
            if momentum is None:
                momentum = self.state[parameter]["momentum"] = torch.zeros_like(parameter)
            momentum.lerp_(parameter.grad, 0.05)
            update = parameter.grad.lerp(momentum, 0.95)
            update = self.orthogonalized(update)
            parameter.mul_(0.999)
            parameter.add_(update, alpha=-1e-3)


class Several:
    """Optimizers that step one after the other."""

    def __init__(self, optimizers):
        self.optimizers = optimizers

    @property
    def state(self):
        return {key: value for one in self.optimizers for key, value in one.state.items()}

    def step(self):
        for one in self.optimizers:
            one.step()

    def zero_grad(self, set_to_none=True):
        for one in self.optimizers:
            one.zero_grad(set_to_none=set_to_none)


class InBackward(Several):
    """One optimizer per parameter, which steps as soon as the gradient is complete."""

    def __init__(self, parameters, make_one):
        super().__init__([make_one([parameter]) for parameter in parameters])
        for parameter, one in zip(parameters, self.optimizers):
            parameter.register_post_accumulate_grad_hook(self.hook(one))

    @staticmethod
    def hook(one):
        def step(_):
            one.step()
            one.zero_grad(set_to_none=True)

        return step

    def step(self):
        pass


def make(case, model):
    name = case.get("optimizer", "adamw")
    parameters = [p for p in model.parameters() if p.requires_grad]
    if name == "muon":
        blocks = [id(p) for key, p in model.named_parameters()
                  if p.ndim == 2 and (".h." in key or ".layers." in key)]
        return Several([Muon([p for p in parameters if id(p) in blocks]),
                        torch.optim.AdamW([p for p in parameters if id(p) not in blocks])])

    def make_one(of):
        if name in OF_TORCH:
            kind, arguments = OF_TORCH[name]
            if "optimizer_form" in case:
                arguments = {**arguments, **FORMS[case["optimizer_form"]]}
            if case.get("l2_decay"):
                arguments = {**arguments, "weight_decay": 0.1}
            return getattr(torch.optim, kind)(of, lr=1e-4, **arguments)
        if name == "lion":
            import lion_pytorch

            return lion_pytorch.Lion(of, lr=1e-4)
        if name == "adafactor-transformers":
            import transformers

            return transformers.Adafactor(of, lr=1e-4, relative_step=False, scale_parameter=False)
        import bitsandbytes

        return getattr(bitsandbytes.optim, OF_BITSANDBYTES[name])(of, lr=1e-4)

    return InBackward(parameters, make_one) if case.get("update_in_backward") else \
        make_one(parameters)
