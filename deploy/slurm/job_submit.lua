-- Holds every job of the partitions that Poolwise places at submission, so that Slurm cannot start it first.
-- A mark in the administrator's comment distinguishes these holds from holds of users, which Poolwise does not touch.
-- Install this file next to slurm.conf, which needs JobSubmitPlugins=lua.
local placed = { pools = true } -- names of the partitions

function slurm_job_submit(job, partitions, uid)
  if placed[job.partition] and job.priority ~= 0 then
    job.priority = 0
    job.admin_comment = "poolwise-waits"
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
